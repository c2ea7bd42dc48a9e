"""TAU2 mock's four agent tools and two user tools, over plain records.

The docstrings are the tools' interface, word for word as TAU2 gives it to models (sierra-research/tau2-bench, MIT
licence, Copyright Sierra Research). What the tools do is written anew.

In "official" semantics a status is stored as it was given, whatever it is, and wrong types meet Python's and pydantic's
own errors, as in TAU2; "fixed" checks arguments first.
"""

from __future__ import annotations

from typing import Any, cast

from muarl.domains.base import Domain
from muarl.domains.table import Table
from muarl.domains.tooling import tool
from muarl_worlds.tau.mock import records
from muarl_worlds.tau.mock.records import TaskStatus

Record = dict[str, Any]


class MockTools(Domain):
    """The agent's side: users and their tasks."""

    @tool(writes=True)
    def create_task(self, user_id: str, title: str, description: str = None) -> Record:  # type: ignore[assignment]  # noqa: RUF013
        """
        Create a new task for a user.

        Args:
            user_id: The ID of the user creating the task
            title: The title of the task
            description: Optional description of the task
        """
        if user_id not in self.db.users:
            raise ValueError(f"User {user_id} not found")
        task_id = f"task_{len(self.db.tasks) + 1}"
        new = records.Task(task_id=task_id, title=title, description=description, status="pending")
        record = self.db.tasks[task_id] = new.model_dump()
        self.db.users[user_id]["tasks"].append(task_id)
        return record

    @tool
    def get_users(self) -> list[Record]:
        """
        Get all users in the database.
        """
        return [record for _, record in self.db.users.scan()]

    @tool(writes=True)
    def update_task_status(self, task_id: str, status: TaskStatus) -> Record:
        """
        Update the status of a task.

        Args:
            task_id: The ID of the task to update
            status: The new status of the task
        """
        if task_id not in self.db.tasks:
            raise ValueError(f"Task {task_id} not found")
        record = cast(Record, self.db.tasks[task_id])
        record["status"] = status
        return record

    def assert_number_of_tasks(self, user_id: str, expected_number: int) -> bool:
        """Whether a user has that many tasks. ValueError if there is no such user."""
        if user_id not in self.db.users:
            raise ValueError(f"User {user_id} not found")
        return bool(len(self.db.users.peek(user_id)["tasks"]) == expected_number)

    def assert_task_status(self, task_id: str, expected_status: str) -> bool:
        """Whether a task has that status. ValueError if there is no such task."""
        if task_id not in self.db.tasks:
            raise ValueError(f"Task {task_id} not found")
        return bool(self.db.tasks.peek(task_id)["status"] == expected_status)

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """
        Transfer the user to a human agent, with a summary of the user's issue.
        Only transfer if
         -  the user explicitly asks for a human agent
         -  given the policy and the available tools, you cannot solve the user's issue.

        Args:
            summary: A summary of the user's issue.
        """
        return "Transfer successful"


class MockUserTools(Domain):
    """The user's side: an inbox of notifications."""

    name = "mock-inbox"

    def _inbox(self) -> Table:
        """The notifications. Where a task's own data made both sides share one database, there are none."""
        if "notifications" not in iter(self.db):
            raise AttributeError("'MockDB' object has no attribute 'notifications'")
        return self.db.notifications

    @tool
    def check_notifications(self) -> list[Record]:
        """Check all notifications in the user's inbox."""
        return [record for _, record in self._inbox().scan()]

    @tool(writes=True)
    def dismiss_notification(self, notification_id: str) -> str:
        """Dismiss (mark as read) a notification.

        Args:
            notification_id: The ID of the notification to dismiss.
        """
        inbox = self._inbox()
        if notification_id not in inbox:
            raise ValueError(f"Notification {notification_id} not found")
        inbox[notification_id]["status"] = "read"
        return f"Notification {notification_id} dismissed"

    def add_notification(self, notification_id: str, message: str, task_id: str | None = None) -> Record:
        """Put a notification into the inbox (a task's initial action)."""
        new = records.Notification(notification_id=notification_id, message=message, task_id=task_id)
        record = self._inbox()[notification_id] = new.model_dump()
        return record

    def assert_notification_status(self, notification_id: str, expected_status: str) -> bool:
        """Whether a notification has that status. ValueError if there is no such notification."""
        inbox = self._inbox()
        if notification_id not in inbox:
            raise ValueError(f"Notification {notification_id} not found")
        return bool(inbox.peek(notification_id)["status"] == expected_status)
