"""MessageAPI: messages among the people of a workspace (BFCL message_api)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from muarl.domains.tooling import tool
from muarl_worlds.bfcl.api import Api, LongContext, Revision
from muarl_worlds.bfcl.parts import Draws, copied, named

__all__ = ["REVISIONS", "MessageAPI", "MessageAPIV3"]

_SEED = 200191
_LOWEST_ID, _HIGHEST_ID = 10_000, 99_999
_LOGGED_OUT = {"error": "No user is currently logged in."}


@named
class MessageAPI(Api):
    """The v4 revision. ``inbox``: messages in the order in which they were sent, each as {receiver: text}."""

    name = "MessageAPI"

    generated_ids: set[int]
    user_count: int
    user_map: dict[str, str]
    inbox: list[dict[str, Any]]
    message_count: int
    current_user: str | None
    _random: Draws

    def load(self, config: Mapping[str, Any], long_context: LongContext | None = None) -> None:
        self._random = Draws(config.get("random_seed", _SEED))
        self.generated_ids = copied(config["generated_ids"]) if "generated_ids" in config else set()
        self.user_count = copied(config.get("user_count", 4))
        self.user_map = (
            copied(config["user_map"])
            if "user_map" in config
            else {"Alice": "USR001", "Bob": "USR002", "Catherine": "USR003", "Daniel": "USR004"}
        )
        self.inbox = (
            copied(config["inbox"])
            if "inbox" in config
            else [
                {"USR002": "My name is Alice. I want to connect."},
                {"USR003": "Could you upload the file?"},
                {"USR004": "Could you upload the file?"},
            ]
        )
        self.message_count = copied(config.get("message_count", 3))
        self.current_user = copied(config.get("current_user"))

    def copy(self) -> Self:
        other = object.__new__(type(self))
        other._random = self._random.copy()
        ids = self.generated_ids
        other.generated_ids = ids.copy() if type(ids) is set else copied(ids)
        other.user_count = copied(self.user_count)
        other.user_map = copied(self.user_map)
        other.inbox = copied(self.inbox)
        other.message_count = copied(self.message_count)
        other.current_user = copied(self.current_user)
        return other

    @tool
    def list_users(self) -> dict[str, Any]:
        """List the names of everybody in the workspace."""
        return {"user_list": list(self.user_map.keys())}

    @tool
    def get_user_id(self, user: str) -> dict[str, Any]:
        """Look up a user's ID.

        user: the user's name.
        """
        if user not in self.user_map:
            return {"error": f"User '{user}' not found in the workspace."}
        return {"user_id": self.user_map.get(user)}

    @tool(writes=True)
    def message_login(self, user_id: str) -> dict[str, Any]:
        """Log in, which sending and reading messages needs.

        user_id: the user's ID, such as "USR001".
        """
        if user_id not in list(self.user_map.values()):
            return {"login_status": False, "message": f"User ID '{user_id}' not found."}
        self.current_user = user_id
        return {"login_status": True, "message": f"User '{user_id}' logged in successfully."}

    @tool
    def message_get_login_status(self) -> dict[str, Any]:
        """Show whether somebody is logged in."""
        return {"login_status": bool(self.current_user)}

    @tool(writes=True)
    def send_message(self, receiver_id: str, message: str) -> dict[str, Any]:
        """Send a message.

        receiver_id: the receiver's user ID, such as "USR001".
        message: the text.
        """
        if not self.current_user:
            return dict(_LOGGED_OUT)
        if receiver_id not in self.user_map.values():
            return {"error": f"Receiver ID '{receiver_id}' not found."}
        new_id = self._new_id()
        self.inbox.append({receiver_id: message})
        self.message_count += 1
        return {
            "sent_status": True,
            "message_id": {"new_id": new_id},
            "message": f"Message sent to '{receiver_id}' successfully.",
        }

    @tool(writes=True)
    def delete_message(self, receiver_id: str) -> dict[str, Any]:
        """Delete the latest message to somebody.

        receiver_id: the receiver's user ID, such as "USR001".
        """
        if not self.current_user:
            return dict(_LOGGED_OUT)
        for message in reversed(list(self.inbox)):
            receiver, _ = list(message.items())[0]  # noqa: RUF015  (IndexError for an empty one)
            if receiver == receiver_id:
                self.inbox.remove(message)  # the first that is equal, as upstream does
                return self._deleted(receiver, receiver_id)
        return {"error": f"Receiver ID {receiver_id} not found."}

    @tool
    def view_messages_sent(self) -> dict[str, Any]:
        """Show all messages, grouped by the receiver's user ID."""
        if not self.current_user:
            return dict(_LOGGED_OUT)
        sent: dict[str, list[Any]] = {}
        for message in self.inbox:
            receiver, text = list(message.items())[0]  # noqa: RUF015
            sent.setdefault(receiver, []).append(text)
        return {"messages": sent}

    @tool(writes=True)
    def add_contact(self, user_name: str) -> dict[str, Any]:
        """Add somebody to the workspace, who gets the next user ID.

        user_name: the new user's name.
        """
        if user_name in self.user_map:
            return {"error": f"User name '{user_name}' already exists."}
        self.user_count += 1  # also where the ID turns out to be taken
        user_id = f"USR{str(self.user_count).zfill(3)}"
        if user_id in self.user_map.values():
            return {"error": f"User ID '{user_id}' already exists."}
        self.user_map[user_name] = user_id
        return {"added_status": True, "user_id": user_id, "message": f"Contact '{user_name}' added successfully."}

    @tool
    def search_messages(self, keyword: str) -> dict[str, Any]:
        """Find the messages that contain a text, in upper or lower case.

        keyword: the text.
        """
        if not self.current_user:
            return dict(_LOGGED_OUT)
        wanted = keyword.lower()
        results = []
        for message in self.inbox:
            receiver, text = list(message.items())[0]  # noqa: RUF015
            if wanted in text.lower():
                results.append({"receiver_id": receiver, "message": text})
        return {"results": results}

    @tool
    def get_message_stats(self) -> dict[str, Any]:
        """Count the messages and the people who got one."""
        if not self.current_user:
            return dict(_LOGGED_OUT)
        receivers = [list(message.items())[0][0] for message in self.inbox]  # noqa: RUF015
        return {"stats": {"received_count": len(receivers), "total_contacts": len(set(receivers))}}

    def _new_id(self) -> int:
        known = self.generated_ids
        if len(known) > _HIGHEST_ID - _LOWEST_ID and all(n in known for n in range(_LOWEST_ID, _HIGHEST_ID + 1)):
            raise RuntimeError("there is no message ID left")  # upstream would look for one forever
        new_id = self._random.randint(_LOWEST_ID, _HIGHEST_ID)
        while new_id in known:
            new_id = self._random.randint(_LOWEST_ID, _HIGHEST_ID)
        known.add(new_id)
        return new_id

    def _deleted(self, receiver: Any, receiver_id: Any) -> dict[str, Any]:
        return {
            "deleted_status": True,
            "receiver_id": receiver,
            "message": f"Receiver {receiver_id}'s latest message deleted successfully.",
        }


@named
class MessageAPIV3(MessageAPI):
    """The v3 revision."""

    def _deleted(self, receiver: Any, receiver_id: Any) -> dict[str, Any]:
        return {
            "deleted_status": True,
            "message_id": receiver,
            "message": f"Receiver {receiver_id}'s first message deleted successfully.",
        }


REVISIONS: Mapping[Revision, type[Api]] = {"v3": MessageAPIV3, "v4": MessageAPI}
