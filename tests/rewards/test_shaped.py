"""The terms of shaped rewards: what earns them, and that they are added to what is learnt from only."""

from __future__ import annotations

import pytest

from muarl.domains.tasks import Action, Task
from muarl.rewards.shaped import shaped_reward, terms
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn, Verdict

TASK = Task("t", "d", "", (Action("find", {"id": "1"}), Action("pay", {"id": "1", "amount": 5})))


def says(*calls: ToolCall) -> Message:
    return Message("assistant", None, calls)


FIND, PAY = ToolCall("a", "find", {"id": "1"}), ToolCall("b", "pay", {"id": "1", "amount": 5})


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ((FIND, PAY), (1.0, 1.0, 1.0)),
        ((FIND,), (1.0, 0.5, 0.5)),
        ((FIND, ToolCall("c", "pay", {"id": "1", "amount": 6})), (1.0, 1.0, 0.5)),
        ((FIND, PAY, ToolCall("c", "sing", {})), (1.0, 2 / 3, 1.0)),
        ((FIND, ToolCall("c", "", {}, invalid="broken")), (0.5, 0.5, 0.5)),
        ((), (1.0, 0.0, 0.0)),
    ],
)
def test_each_term(calls: tuple[ToolCall, ...], expected: tuple[float, float, float]) -> None:
    found = terms(TASK, [says(*calls)] if calls else [Message("assistant", "Hello.")])
    assert (found["format"], found["tool_names"], found["milestones"]) == expected


def test_where_nothing_is_to_be_done_doing_nothing_earns_all() -> None:
    assert set(terms(Task("t", "d", "", ()), [Message("assistant", "Hi.")]).values()) == {1.0}


def test_the_terms_are_added_by_their_weights() -> None:
    episode = Episode("e", "t", "d", [Turn(says(FIND))], StopReason.USER_STOP)
    episode.verdict = Verdict(1.0, audit={"shaped_format": 0.5, "shaped_tool_names": 0.25, "shaped_milestones": 1.0})
    assert shaped_reward(episode, {"format": 0.0, "tool_names": 0.0, "milestones": 0.0}) == 1.0
    assert shaped_reward(episode, {"format": 0.1, "tool_names": 0.2, "milestones": 0.3}) == pytest.approx(1.4)
    assert episode.reward == 1.0
    with pytest.raises(KeyError):
        shaped_reward(Episode("e", "t", "d", [], StopReason.USER_STOP, verdict=Verdict(1.0)), {"format": 0.1})
