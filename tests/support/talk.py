"""A conversation with an agenda user, line by line, and wishes to give it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muarl.domains.retail import phrases
from muarl.users.agenda import AgendaUser
from support.callers import Conversation
from support.generated import agenda_task, request

ADDRESS = {
    "address1": "12 Elm Street", "address2": "Suite 1", "city": "Boston", "state": "MA", "zip": "54321",
    "country": "USA",
}  # fmt: skip
CANCEL = {"order_id": "#W1111111", "reason": "no longer needed"}
RETURN = {"order_id": "#W2222222", "items": ["Mug", "Lamp"], "payment": "paypal"}
SWAP = {"order_id": "#W3333333", "items": ["Mug"], "to": ["blue"], "payment": "credit_card"}
MOVE = {"order_id": "#W4444444", "address": ADDRESS}
PAY = {"order_id": "#W5555555", "payment": "gift_card"}
ASK = {"order_id": "#W6666666", "items": ["Rug"]}


class Talk(Conversation):
    """A conversation with the caller of these requests."""

    def __init__(self, *requests: Mapping[str, Any], seed: int = 0, **agenda: Any) -> None:
        super().__init__(AgendaUser(agenda_task(*requests, **agenda), seed=seed))


def cancel(**more):
    return request("cancel", CANCEL, **more)


def agrees(text):
    return text in phrases.YES
