"""Figures from episodes, on episodes small enough to count by hand."""

from __future__ import annotations

from typing import Any

import pytest

from muarl.accounts.metrics import (
    DOMAIN,
    agent_turns,
    behaviour,
    diversity,
    episode_metrics,
    flatten,
    group_metrics,
    is_success,
    scored,
    stop_metrics,
    tool_metrics,
    without_violation,
)
from muarl.accounts.success import clean_success_rate
from muarl.types.chat import GREETING, Message, ToolCall
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, Usage, Verdict


def make(reward: float | None = 1.0, *, messages: list[Message] | None = None, **other: Any) -> Episode:
    fields: dict[str, Any] = {"id": "e", "task_id": "t", "domain": "retail", "stop": StopReason.USER_STOP} | other
    audit = fields.pop("audit", {})
    verdict = None if reward is None else Verdict(reward, audit=audit)
    turns = [Turn(m) for m in messages or [Message("user", "hi"), Message("assistant", "bye")]]
    return Episode(turns=turns, verdict=verdict, **fields)


def called(*names: str, bad: int = 0, errors: int = 0) -> list[Message]:
    calls = [ToolCall(str(i), n) for i, n in enumerate(names)]
    calls += [ToolCall(f"bad{i}", "", invalid="no JSON") for i in range(bad)]
    results = [Message("tool", "", tool_call_id=c.id, error=i < errors) for i, c in enumerate(calls)]
    return [Message("user", "hi"), Message("assistant", None, tuple(calls)), *results]


def test_success_is_a_reward_of_one() -> None:
    assert is_success(1.0) and is_success(1 - 1e-7) and is_success(1 + 1e-7)
    assert not is_success(0.999) and not is_success(0.0) and not is_success(2.0)


def test_a_success_without_any_violation_is_one_that_the_audit_has_seen() -> None:
    clean, broken, failed = (make(r, audit={"violations": n}) for r, n in ((1.0, 0.0), (1.0, 2.0), (0.0, 0.0)))
    unseen = make(1.0)
    assert [*map(without_violation, (clean, broken, failed, unseen))] == [True, False, False, None]
    found = episode_metrics([clean, broken, failed, unseen])
    assert (found["success"], found["success_without_violation"]) == (0.75, 1 / 3)
    assert "success_without_violation" not in episode_metrics([unseen]), "not checked is not clean"


def test_success_without_any_violation_is_of_the_same_episodes_as_success() -> None:
    """So it is never the larger of the two: not by a failure that nobody audited, nor by another domain's failures."""
    clean, failed = make(1.0, audit={"violations": 0.0}), make(0.0)
    found = episode_metrics([clean, failed])
    assert found["success"] == found["success_without_violation"] == 0.5

    audited = [make(r, task_id=t, audit={"violations": 0.0}, tags={DOMAIN: "a"}) for r, t in ((1.0, "1"), (0.0, "2"))]
    unaudited = [make(0.0, task_id=t, tags={DOMAIN: "b"}) for t in "34"]
    found = episode_metrics([*audited, *unaudited])
    assert found["success"] == 0.25 and "success_without_violation" not in found
    assert found["domain/a/success_without_violation"] == 0.5
    assert clean_success_rate([*audited, *unaudited]) is None
    assert clean_success_rate(audited).value == 0.5  # type: ignore[union-attr]


def test_infrastructure_failures_are_counted_and_excluded() -> None:
    failed = make(None, stop=StopReason.INFRASTRUCTURE, user_usage=Usage(100, 0, 1, 0, 0.5))
    found = episode_metrics([make(1.0), make(0.0), failed])
    assert (found["episodes"], found["excluded"], found["success"]) == (2, 1, 0.5)
    assert found["user/cost"] == 0.5  # money is spent on failures too
    assert episode_metrics([failed])["episodes"] == 0
    with pytest.raises(ValueError, match="episode e has no verdict"):
        scored([make(None)])
    failed.error = "agent: endpoint m: no answer"
    with pytest.raises(ValueError, match="has no verdict: it ended with infrastructure, agent: endpoint m: no answer"):
        assert failed.reward


def test_groups() -> None:
    episodes = [
        make(r, group=g) for g, rewards in {"a": (1, 1), "b": (0, 0), "c": (1, 0), "d": (0, 1)}.items() for r in rewards
    ]
    assert group_metrics(episodes) == {
        "groups": 4.0,
        "groups/all_correct": 0.25,
        "groups/all_wrong": 0.25,
        "groups/mixed": 0.5,
    }


def test_stop_reasons_sum_to_one() -> None:
    found = stop_metrics([make(stop=StopReason.MAX_TURNS), make(), make(), make(stop=StopReason.TRANSFER)])
    assert found["stop/user_stop"] == 0.5 and found["stop/max_turns"] == 0.25 and found["stop/empty_reply"] == 0
    assert sum(found.values()) == 1


def test_tools() -> None:
    episodes = [
        make(messages=called("calculate", "get_order", "get_order", bad=1, errors=2)),
        make(messages=[Message("user", "hi")]),
    ]
    found = tool_metrics(episodes)
    assert found == {
        "calls": 2.0,
        "malformed_calls": 0.5,
        "loops": 0.0,
        "calls_general_share": 0.25,
        "tool_error_rate": 0.5,
        "calls/calculate": 0.5,
        "calls/get_order": 1.0,
    }
    assert "tool_error_rate" not in tool_metrics([make()])


def test_an_episode_that_makes_one_call_four_times_goes_round_in_circles() -> None:
    four, three = make(messages=called(*["get_order"] * 4)), make(messages=called(*["get_order"] * 3, "calculate"))
    assert tool_metrics([four, three, three, three])["loops"] == 0.25


def test_success_with_consent_counts_no_episode_with_a_write_that_nobody_agreed_to() -> None:
    kept = [make(1.0, audit={"writes": 1, "writes_without_consent": n}) for n in (0, 0, 1)]
    failed = make(0.0, audit={"writes": 1, "writes_without_consent": 0})
    assert episode_metrics([*kept, failed])["success_with_consent"] == 0.5
    assert "success_with_consent" not in episode_metrics([make(1.0)]), "nobody knows"


def test_consent_is_a_share_of_writes_and_transfers_of_episodes() -> None:
    found = behaviour(
        [
            make(audit={"writes": 3, "writes_without_consent": 1, "needless_transfers": 1, "repeated_calls": 2}),
            make(audit={"writes": 1, "writes_without_consent": 1, "needless_transfers": 0, "repeated_calls": 0}),
            make(audit={"writes": 0, "writes_without_consent": 0, "repeated_calls": 0}),
        ]
    )
    assert found["writes_without_consent"] == 0.5
    assert found["needless_transfers"] == 0.5
    assert found["audit/repeated_calls"] == pytest.approx(2 / 3)
    assert found["stop/user_stop"] == 1.0 and "stop/max_turns" not in found


def test_what_is_grounded_is_a_share_of_what_hangs_on_documents() -> None:
    some = [make(audit={"documented": 3, "grounded": 1, "searches": 2}), make(audit={"documented": 1, "grounded": 1})]
    found = behaviour([*some, make(audit={"documented": 0, "grounded": 0, "searches": 1})])
    assert found["grounded"] == 0.5 and "audit/grounded" not in found
    assert found["audit/documented"] == pytest.approx(4 / 3) and found["audit/searches"] == 1.5
    assert "grounded" not in behaviour([make(audit={"documented": 0, "grounded": 0})])


def test_turns_leave_out_the_greeting() -> None:
    talk = [
        Message("assistant", GREETING),
        Message("user", "hi"),
        Message("assistant", "yes?"),
        Message("assistant", "x"),
    ]
    assert agent_turns(make(messages=talk)) == 2


def test_diversity() -> None:
    trace = TokenTrace()
    trace.append_given([9, 9, 9, 9, 9])
    trace.append_sampled([1, 2, 3, 4, 5], [0.0] * 5, 0)
    trace.append_given([9])
    trace.append_sampled([1, 2, 3, 4], [0.0] * 4, 0)
    assert diversity([make(tokens=trace)]) == pytest.approx(2 / 3)  # 1234, 2345, 1234 again
    assert diversity([make(messages=[Message("assistant", "a b c d"), Message("assistant", "a b c d")])]) == 0.5
    assert diversity([make()]) is None


def test_usage_and_timings() -> None:
    trace = TokenTrace()
    trace.append_sampled([1, 2, 3], [0.0] * 3, 0)
    one = make(tokens=trace, timings={"agent": 2.0}, user_usage=Usage(10, 4, 2, 1, 0.25))
    two = make(agent_usage=Usage(0, 5, 1), timings={"agent": 4.0}, user_usage=Usage(30, 6, 2, 0, 0.5))
    found = episode_metrics([one, two])
    assert found["agent_tokens"] == 4 and found["agent_tokens_per_turn"] == 4
    assert found["time/agent"] == 3.0
    assert (found["user/prompt_tokens"], found["user/retries"], found["user/cost"]) == (20, 1, 0.75)


def test_flatten() -> None:
    assert flatten({"a": 1, "b": {"c": True, "d": "text", "e": {"f": 2.5}}}) == {"a": 1, "b/c": 1, "b/e/f": 2.5}


def test_episodes_of_several_domains_are_measured_by_domain_too() -> None:
    mixed = [make(1.0, tags={"domain": "a"}), make(0.0, tags={"domain": "b"})]
    found = episode_metrics(mixed)
    assert (found["success"], found["domain/a/success"], found["domain/b/success"]) == (0.5, 1.0, 0.0)
    overall = {name for name in found if not name.startswith("domain/")}
    assert {name.removeprefix("domain/a/") for name in found if name.startswith("domain/a/")} <= overall
    assert not any(name.startswith("domain/") for name in episode_metrics([make(1.0)]))
