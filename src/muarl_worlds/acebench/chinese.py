"""The scenario classes in Chinese. The names are upstream's, which stand in Python's error texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muarl.domains.tooling import tool
from muarl_worlds.acebench import food, phone, travel


class BaseApi(phone.BaseApi):
    """See the English class."""

    language = "zh"


class MessageApi(phone.MessageApi):
    """See the English class."""

    language = "zh"


class ReminderApi(phone.ReminderApi):
    """See the English class; it has two tools more."""

    language = "zh"

    @tool(writes=True)
    def mark_as_notified(self, reminder_id: int) -> Any:
        """Note that the user has been notified of a reminder.

        Args:
            reminder_id: The reminder's number in the list.
        """
        if reminder_id not in self.reminder_list:
            return self._no("no_reminder")
        self.reminder_list[reminder_id]["notified"] = True
        return self._yes("reminder_notified", reminder_id)

    @tool
    def search_reminders(self, keyword: str) -> Any:
        """Find the reminders whose title or description contains a word, in any case.

        Args:
            keyword: What the text must contain.
        """
        found = []
        for reminder in self.reminder_list.values():
            if keyword.lower() in reminder["title"].lower() or keyword.lower() in reminder["description"].lower():
                time = reminder["time"]
                if not self._fixed:
                    time = time.strftime("%Y-%m-%d %H:%M")  # upstream's times are text, which has none
                found.append({"title": reminder["title"], "description": reminder["description"], "time": time})
        return {"status": True, "reminders": found} if found else self._no("no_matching_reminders")


class FoodPlatform(food.FoodPlatform):
    """See the English class."""

    language = "zh"

    def _can_pay(self, username: str, total: float) -> bool:
        """An order that would take the last yuan is refused here."""
        return not total >= self.users[username]["balance"]

    def _mentions(self, order: Mapping[str, Any], keyword: str) -> bool:
        if self._fixed:
            return super()._mentions(order, keyword)
        return keyword.lower() in order["merchant_name"].lower() or any(
            keyword.lower() in item.lower()  # an object, which has no such method
            for item in order.get("items", [])
        )


class Travel(travel.Travel):
    """See the English class."""

    language = "zh"
