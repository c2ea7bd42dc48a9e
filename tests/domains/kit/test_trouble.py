"""The scripted expert and systems that fail: what it takes for a failure, and what it does about it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muarl.audit.fault_recovery import recoveries
from muarl.domains.faults.layer import UNDOCUMENTED
from muarl.domains.faults.rates import KINDS, FaultRates
from muarl.domains.kit.trouble import NOT_SEEN, TRIES, RetryState, holds, trouble_in, understood
from muarl.environments.play import play_tasks
from muarl.environments.registry import find
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode

CALL = ToolCall("1", "book", {"room": "R-1", "date": "2026-03-01"})


def played(faults: FaultRates, name: str = "hotel-generated", count: int = 20) -> list[Episode]:
    environment = find(name)
    tasks = environment.make_tasks("train", count)
    return asyncio.run(play_tasks(environment, environment.place().expert_agent(), tasks, faults=faults))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "partial"])
def test_under_a_fault_now_and_then_it_solves_what_it_solves_without(kind: str) -> None:
    episodes = played(FaultRates(**{kind: 0.1}))
    hit = [e for e in episodes if e.tags["system_faults"]]
    assert sum(e.reward for e in episodes) >= len(episodes) - 1
    assert hit or kind == "stale_read"


def test_it_looks_again_at_an_answer_that_says_it_is_cut() -> None:
    episodes = played(FaultRates(partial=0.3), count=30)
    assert sum(bool(e.tags["system_faults"]) for e in episodes) > 3 and all(e.reward == 1 for e in episodes)


def test_it_never_repeats_a_write_blindly_and_tells_the_customer() -> None:
    episodes = played(FaultRates(timeout_after_write=0.5, latency=0.3), count=30)
    found = [one for e in episodes for one in recoveries(e.messages)]
    writes = [one for one in found if one.timed_out_write]
    assert len(writes) > 10 and all(one.repeated_at is None for one in writes)
    assert sum(one.told or one.handed_over for one in found) == len(found)


def test_it_hands_over_with_a_summary_where_nothing_helps() -> None:
    episodes = played(FaultRates(permission=1.0, permission_for_good=1.0), count=6)
    for episode in episodes:
        calls = [call for m in episode.messages for call in m.tool_calls]
        tried = [call for call in calls if not call.name.startswith("transfer")]
        if episode.tags["system_faults"]:
            assert episode.stop.value == "transfer" and len(tried) == 1
            assert tried[0].name.replace("_", " ") in calls[-1].arguments["summary"]


def test_it_gives_up_after_a_few_tries() -> None:
    episodes = played(FaultRates(undocumented_error=1.0), count=4)
    for episode in episodes:
        calls = [call.name for m in episode.messages for call in m.tool_calls]
        assert len(calls) <= TRIES + 1


@pytest.mark.parametrize("text", UNDOCUMENTED)
def test_it_knows_an_error_that_no_document_knows(text: str) -> None:
    assert trouble_in(Message("tool", f"Error: {text}", error=True)) == "unknown"
    assert trouble_in(Message("tool", f"Error: {text}")) == ""


@pytest.mark.parametrize(
    "text",
    ["Error: no guest with this name", "Error: order not found", "Error: the room is not available", "Error: nullify"],
)
def test_a_tools_own_refusal_is_no_failure(text: str) -> None:
    assert trouble_in(Message("tool", text, error=True)) == ""


def test_it_reads_a_new_versions_names_and_no_others() -> None:
    assert understood('{"status_v2": "open", "file": "a_v2 b"}') == '{"status": "open", "file": "a_v2 b"}'
    assert understood("status_v2 open; name my_v2 file\nrows_v2: id 1") == "status open; name my_v2 file\nrows: id 1"
    assert understood('{"a": [1]}\n[truncated: 1 of 2 entries]') == '{"a": [1]}'


def test_a_write_in_doubt_is_looked_at_before_it_is_made_again() -> None:
    retry = RetryState()
    retry.failed("time-out", CALL, None, [("list", {"guest": "G"}, ["a"]), ("rooms", {}, NOT_SEEN)])
    assert retry.doubt is not None and retry.again is None
    assert not retry.learn(["a"]) and not retry.learn([{"room": "R-2", "date": "2026-03-01"}])
    assert retry.again == (CALL, None) and retry.doubt is None


@pytest.mark.parametrize("shown", [["a", "b"], None])
def test_a_look_that_shows_something_else_tells_that_it_was_carried_out(shown: Any) -> None:
    retry = RetryState()
    retry.failed("time-out", CALL, None, [("list", {"guest": "G"}, ["a"])])
    assert retry.learn(shown) and not retry.waiting


def test_without_a_look_nobody_can_tell() -> None:
    retry = RetryState()
    retry.failed("time-out", CALL, None, [])
    assert retry.stuck == CALL and retry.doubtful


def test_records_like_a_writes_arguments() -> None:
    assert holds({"bookings": [{"id": "B-1", "date": "2026-03-01", "room": "R-1"}]}, CALL.arguments)
    assert holds([{"date": "2026-03-01"}], CALL.arguments)
    assert not holds([{"date": "2026-03-01", "room": "R-2"}], CALL.arguments)
    assert not holds({"nights": 2}, {"nights": 2}) and not holds("R-1", CALL.arguments)
