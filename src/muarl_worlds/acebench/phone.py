"""The phone of ACEBench: the device itself, its text messages and its reminders (Chinese forms: chinese.py)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from muarl.domains.tooling import tool
from muarl_worlds.acebench.scenario import AceScenario

CAPACITY = 6
"""How many messages, and how many reminders, the phone holds."""


class BaseApi(AceScenario):
    """The device. ``wifi``: whether the connection is on. ``logged_in``: whether the device is unlocked."""

    saved: ClassVar[tuple[str, ...]] = ("wifi", "logged_in")

    def __init__(self) -> None:
        self.wifi = False
        self.logged_in = True

    def load(self, config: Mapping[str, Any]) -> None:
        """Wi-Fi is off and the device logged in unless said otherwise."""
        self.wifi = config.get("wifi", False)
        self.logged_in = config.get("logged_in", True)

    @tool(writes=True)
    def turn_on_wifi(self) -> Any:
        """Switch the phone's Wi-Fi on. Sending messages and the food platform need it."""
        self.wifi = True
        return self._yes("wifi_on")

    @tool(writes=True)
    def login_device(self) -> Any:
        """Log in to the phone. Messages and reminders can be used only then."""
        self.logged_in = True
        return self._yes("device_in")


class MessageApi(BaseApi):
    """Text messages. ``inbox``: number -> message, at most CAPACITY. ``user_list``: who may send and receive."""

    saved: ClassVar[tuple[str, ...]] = ("inbox",)

    def __init__(self) -> None:
        super().__init__()
        self.max_capacity = CAPACITY
        self.user_list: dict[str, Any] = self._initial("user_list")
        self.inbox: dict[int, Any] = self._initial("inbox")
        self.message_id_counter = 6

    @tool(writes=True)
    def send_message(self, sender_name: str, receiver_name: str, message: str) -> Any:
        """Send a text message from one person to another. It takes a place in the inbox, which may be full.

        Args:
            sender_name: Name of the person who sends it, such as 'Grace'.
            receiver_name: Name of the person who is to get it, such as 'Frank'.
            message: The text of the message.
        """
        if self.logged_in == False:  # noqa: E712 (None, which a scenario may set, counts as logged in)
            return self._no("send_not_in")
        if self.wifi == False:  # noqa: E712
            return self._no("send_no_wifi")
        if len(self.inbox) >= self.max_capacity:
            return self._no("inbox_full")
        if sender_name not in self.user_list or receiver_name not in self.user_list:
            return self._no("no_party")
        sender, receiver = self.user_list[sender_name], self.user_list[receiver_name]
        self.message_id_counter += 1
        self.inbox[self.message_id_counter] = {
            "sender_id": sender["user_id"],
            "receiver_id": receiver["user_id"],
            "message": message,
        }
        return self._yes("sent", receiver_name)

    @tool(writes=True)
    def delete_message(self, message_id: int) -> Any:
        """Delete one message from the inbox.

        Args:
            message_id: The message's number.
        """
        if self.logged_in == False:  # noqa: E712
            return self._no("delete_not_in")
        if message_id not in self.inbox:
            return self._no("no_message")
        del self.inbox[message_id]
        return self._yes("deleted", message_id)

    @tool
    def view_messages_between_users(self, sender_name: str, receiver_name: str) -> Any:
        """Show every message in the inbox that one person has sent to another.

        Args:
            sender_name: Name of the person who has sent them.
            receiver_name: Name of the person who has got them.
        """
        if self.logged_in == False:  # noqa: E712
            return self._no("view_not_in")
        if sender_name not in self.user_list:
            return self._no("no_sender")
        if receiver_name not in self.user_list:
            return self._no("no_receiver")
        pair = self.user_list[sender_name]["user_id"], self.user_list[receiver_name]["user_id"]
        found = [
            {"id": number, "sender": sender_name, "receiver": receiver_name, "message": entry["message"]}
            for number, entry in self.inbox.items()
            if (entry["sender_id"], entry["receiver_id"]) == pair
        ]
        return {"status": True, "messages": found} if found else self._no("none_between")

    @tool
    def search_messages(self, user_name: str, keyword: str) -> Any:
        """Find the messages that a person has sent or got and whose text contains a word, in any case.

        Args:
            user_name: Name of the person.
            keyword: What the text must contain.
        """
        if user_name not in self.user_list:
            return self._no("no_user")
        user_id = self.user_list[user_name]["user_id"]
        found = []
        for number, entry in self.inbox.items():
            concerned = entry["sender_id"] == user_id or entry["receiver_id"] == user_id
            if concerned and keyword.lower() in entry["message"].lower():
                found.append(
                    {
                        "id": number,
                        "sender_id": entry["sender_id"],
                        "receiver_id": entry["receiver_id"],
                        "message": entry["message"],
                    }
                )
        return {"status": True, "messages": found} if found else self._no("none_found")

    @tool
    def get_all_message_times_with_ids(self) -> Any:
        """Show the date of every message in the inbox by the message's number."""
        if self.logged_in == False:  # noqa: E712
            return self._no("times_not_in")
        if self._fixed:
            return {number: entry.get("time") for number, entry in self.inbox.items()}
        return {number: entry["time"] for number, entry in self.inbox.items()}

    @tool
    def get_latest_message_id(self) -> Any:
        """Tell the number of the newest message in the inbox."""
        if self.logged_in == False:  # noqa: E712
            return self._no("latest_not_in")
        if not self.inbox:
            return self._no("inbox_empty")
        latest, number = None, None
        for key, entry in self.inbox.items():
            time = self._time_of(entry)
            if latest is None or time > latest:
                latest, number = time, key
        return {**self._yes("latest", number), "message_id": number}

    @tool
    def get_earliest_message_id(self) -> Any:
        """Tell the number of the oldest message in the inbox."""
        if self.logged_in == False:  # noqa: E712
            return self._no("earliest_not_in")
        if not self.inbox:
            return self._no("inbox_empty")
        earliest, number = None, None
        for key, entry in self.inbox.items():
            time = self._time_of(entry)
            if earliest is None or time < earliest:
                earliest, number = time, key
        return {**self._yes("earliest", number), "message_id": number}

    def _time_of(self, entry: Mapping[str, Any]) -> datetime:
        """A message's date. Sent ones have none, which upstream trips over; fixed, they are the newest."""
        if self._fixed and "time" not in entry:
            return datetime.max
        return datetime.strptime(entry["time"], "%Y-%m-%d")


class ReminderApi(BaseApi):
    """Reminders. ``reminder_list``: number -> reminder, at most CAPACITY."""

    saved: ClassVar[tuple[str, ...]] = ("reminder_list",)

    def __init__(self) -> None:
        self.max_capacity = CAPACITY
        self.reminder_list: dict[int, Any] = self._initial("reminder_list")
        self.reminder_id_counter = 3

    @tool
    def view_reminder_by_title(self, title: str) -> Any:
        """Show the reminder that has exactly this title.

        Args:
            title: The reminder's title.
        """
        if self.logged_in == False:  # noqa: E712
            return self._no("reminder_view_not_in")
        for reminder in self.reminder_list.values():
            if reminder["title"] == title:
                return {"status": True, "reminder": reminder}
        return self._no("no_title", title)

    @tool(writes=True)
    def add_reminder(self, title: str, description: str, time: str) -> Any:
        """Add a reminder, if there is room for one more.

        Args:
            title: Its title.
            description: What is to be remembered.
            time: When, as YYYY-MM-DD HH:MM, such as '2024-07-15 09:30'.
        """
        if self.logged_in == False:  # noqa: E712
            return self._no("reminder_add_not_in")
        if len(self.reminder_list) >= self.max_capacity:
            return self._no("reminders_full")
        self.reminder_id_counter += 1
        number = self.reminder_id_counter
        self.reminder_list[number] = {
            "reminder_id": number,
            "title": title,
            "description": description,
            "time": time,
            "notified": False,
        }
        return self._yes("reminder_added", title)

    @tool(writes=True)
    def delete_reminder(self, reminder_id: int) -> Any:
        """Delete a reminder.

        Args:
            reminder_id: The reminder's number in the list.
        """
        if self.logged_in == False:  # noqa: E712
            return self._no("reminder_delete_not_in")
        if reminder_id not in self.reminder_list:
            return self._no("no_reminder")
        del self.reminder_list[reminder_id]
        return self._yes("reminder_deleted", reminder_id)

    @tool
    def view_all_reminders(self) -> Any:
        """Show all reminders: title, description, time, and whether the user has been notified."""
        if not self.reminder_list:
            return self._no("no_reminders")
        shown = ("title", "description", "time", "notified")
        return {"status": True, "reminders": [{k: r[k] for k in shown} for r in self.reminder_list.values()]}
