"""TicketAPI: the support tickets of a company (BFCL ticket_api)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from muarl.domains.tooling import tool
from muarl_worlds.bfcl.api import Api, LongContext, Revision
from muarl_worlds.bfcl.parts import copied, named, twin

_EDITABLE = frozenset(("title", "description", "status", "priority"))


@named
class _TicketAPI(Api):
    """What both revisions have. ``current_user``: who is logged in, None or empty if nobody is."""

    name = "TicketAPI"

    ticket_queue: list[dict[str, Any]]
    ticket_counter: int
    current_user: Any

    def load(self, config: Mapping[str, Any], long_context: LongContext | None = None) -> None:
        self.ticket_queue = copied(config.get("ticket_queue", []))
        self.ticket_counter = copied(config.get("ticket_counter", 1))
        self.current_user = copied(config.get("current_user"))

    def copy(self) -> Self:
        return twin(self)

    @tool(writes=True)
    def create_ticket(self, title: str, description: str = "", priority: int = 1) -> dict[str, Any]:
        """Open a new ticket for the user who is logged in.

        title: what the ticket is about.
        description: the details.
        priority: from 1 to 5, which is the most urgent.
        """
        if not self.current_user:
            return {"error": "User not authenticated. Please log in to create a ticket."}
        if priority < 1 or priority > 5:
            return {"error": "Invalid priority. Priority must be between 1 and 5."}
        ticket = {
            "id": self.ticket_counter,
            "title": title,
            "description": description,
            "status": "Open",
            "priority": priority,
            "created_by": self.current_user,
        }
        self.ticket_queue.append(ticket)
        self.ticket_counter += 1
        return ticket

    @tool
    def get_ticket(self, ticket_id: int) -> dict[str, Any]:
        """Show a ticket.

        ticket_id: the ticket's number.
        """
        return self._find(ticket_id) or _not_found(ticket_id)

    @tool(writes=True)
    def close_ticket(self, ticket_id: int) -> dict[str, Any]:
        """Close a ticket.

        ticket_id: the ticket's number.
        """
        ticket = self._find(ticket_id)
        if not ticket:
            return _not_found(ticket_id)
        if ticket["status"] == "Closed":
            return {"error": f"Ticket with ID {ticket_id} is already closed."}
        ticket["status"] = "Closed"
        return {"status": f"Ticket {ticket_id} has been closed successfully."}

    @tool(writes=True)
    def resolve_ticket(self, ticket_id: int, resolution: str) -> dict[str, Any]:
        """Mark a ticket as resolved.

        ticket_id: the ticket's number.
        resolution: how it was resolved.
        """
        ticket = self._find(ticket_id)
        if not ticket:
            return _not_found(ticket_id)
        if ticket["status"] == "Resolved":
            return {"error": f"Ticket with ID {ticket_id} is already resolved."}
        ticket["status"] = "Resolved"
        ticket["resolution"] = resolution
        return {"status": f"Ticket {ticket_id} has been resolved successfully."}

    @tool(writes=True)
    def edit_ticket(self, ticket_id: int, updates: dict[str, Any]) -> dict[str, Any]:
        """Change fields of a ticket.

        ticket_id: the ticket's number.
        updates: the new values of title, description, status or priority, by the field's name.
        """
        ticket = self._find(ticket_id)
        if not ticket:
            return _not_found(ticket_id)
        # Upstream names several of them in the order of a set, which its hash seed decides; here: as they were given.
        invalid = [key for key in updates.keys() if key not in _EDITABLE]  # noqa: SIM118  (the error for lists)
        if invalid:
            return {"error": f"Invalid fields for update: {', '.join(invalid)}"}
        for key, value in updates.items():
            if value is not None:
                ticket[key] = value
        return {"status": f"Ticket {ticket_id} has been updated successfully."}

    @tool(writes=True)
    def ticket_login(self, username: str, password: str) -> dict[str, Any]:
        """Log a user in to the ticket system.

        username: the user's name.
        password: the user's password.
        """
        if username and password:
            self.current_user = username
            return {"success": True}
        return {"success": False}

    @tool(writes=True)
    def logout(self) -> dict[str, Any]:
        """Log the user out of the ticket system."""
        if self.current_user:
            self.current_user = None
            return {"success": True}
        return {"success": False}

    @tool
    def get_user_tickets(self, status: str | None = None) -> list[dict[str, Any]]:
        """List the tickets that the user has opened.

        status: only those with this status, whatever its case.
        """
        if not self.current_user:
            return [{"error": "User not authenticated. Please log in to view tickets."}]
        found = [ticket for ticket in self.ticket_queue if ticket["created_by"] == self.current_user]
        if status:
            return [ticket for ticket in found if ticket["status"].lower() == status.lower()]
        return found

    def _find(self, ticket_id: Any) -> dict[str, Any] | None:
        for ticket in self.ticket_queue:
            if ticket["id"] == ticket_id:
                return ticket
        return None


@named
class TicketsV3(_TicketAPI):
    """TicketAPI of revision v3."""

    @tool
    def ticket_get_login_status(self) -> dict[str, Any]:
        """Say whether a user is logged in."""
        return {"username": bool(self.current_user)}


@named
class TicketsV4(_TicketAPI):
    """TicketAPI of revision v4."""

    @tool
    def ticket_get_login_status(self) -> dict[str, Any]:
        """Say whether a user is logged in."""
        return {"login_status": bool(self.current_user)}


def _not_found(ticket_id: Any) -> dict[str, Any]:
    return {"error": f"Ticket with ID {ticket_id} not found."}


REVISIONS: Mapping[Revision, type[Api]] = {"v3": TicketsV3, "v4": TicketsV4}
