"""What the system does wrong with calls: the state after each kind of fault, and draws that follow from the seed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.base import World
from muarl.domains.faults.layer import UNDOCUMENTED, FaultLayer
from muarl.domains.faults.rates import KINDS, FaultRates
from muarl.types.chat import Message, ToolCall, ToolFault, ToolResult
from support.toy_shop import Toy, toy_task

LOOK = ("look", {"order_id": "#W12"})
CANCEL = ("cancel", {"order_id": "#W12"})


def layer(seed: int = 0, *, spared: tuple[str, ...] = (), **rates: Any) -> FaultLayer:
    return FaultLayer(FaultRates(**rates), seed, spared=spared)


def ask(faults: FaultLayer, world: World, *calls: tuple[str, dict[str, Any]]) -> list[ToolResult]:
    async def answers() -> list[ToolResult]:
        made = [ToolCall(str(n), name, arguments) for n, (name, arguments) in enumerate(calls)]
        return [result async for result in faults.answers(world, "assistant", made)]

    return asyncio.run(answers())


def world() -> World:
    return Toy().world(toy_task())


def kinds(result: ToolResult) -> list[str]:
    return [fault.kind for fault in result.faults]


def test_without_faults_answers_are_the_worlds_own() -> None:
    with_layer, without = world(), world()
    calls = [LOOK, CANCEL, LOOK, CANCEL, ("look", {"order_id": "#W99"}), ("nothing", {})]
    own = [without.call("assistant", ToolCall("", name, arguments)) for name, arguments in calls]
    assert ask(layer(), with_layer, *calls) == own and not FaultRates()
    assert with_layer.digest() == without.digest()


@pytest.mark.parametrize("kind", ["outage", "undocumented_error", "permission"])
def test_a_call_that_fails_does_not_reach_its_tool(kind: str) -> None:
    here, before = world(), world().digest()
    result = ask(layer(**{kind: 1.0}), here, CANCEL)[0]
    assert result.error and kinds(result) == [kind]
    assert result.faults[0].failed and not result.faults[0].ran and result.faults[0].writes
    assert here.digest() == before and here.writes == []


def test_a_slow_call_is_answered_until_it_is_too_slow() -> None:
    quick = ask(layer(latency=1.0, latency_seconds=(3, 3)), here := world(), CANCEL)[0]
    assert quick.content == "done" and quick.faults == (ToolFault("latency", ran=True, writes=True, seconds=3.0),)
    assert here.writes
    slow = ask(layer(latency=1.0, latency_seconds=(31, 31)), here := world(), CANCEL)[0]
    assert slow.error and slow.faults == (ToolFault("latency", failed=True, writes=True, seconds=31.0),)
    assert "timed out after 30 seconds" in slow.content and not here.writes


def test_a_write_that_times_out_is_carried_out_and_its_answer_is_that_of_a_call_that_was_too_slow() -> None:
    here, done = world(), world()
    done.call("assistant", ToolCall("", *CANCEL))
    result = ask(layer(timeout_after_write=1.0), here, CANCEL)[0]
    assert result.error and kinds(result) == ["timeout_after_write"] and result.faults[0].ran
    assert here.digest() == done.digest()
    slow = ask(layer(latency=1.0, latency_seconds=(31, 31)), world(), CANCEL)[0]
    assert slow.content == result.content  # nobody can tell them apart
    again = ask(layer(timeout_after_write=1.0), here, CANCEL)[0]
    assert again.content == "Error: Non-pending order cannot be cancelled" and again.faults == ()


def test_an_outage_lasts_as_long_as_it_says_and_ends() -> None:
    faults = layer(outage=1.0, outage_calls=(3, 3), outage_everything=0.0)
    answers = ask(faults, world(), LOOK, LOOK, LOOK)
    assert [kinds(a) for a in answers] == [["outage"]] * 3 and not answers[0].faults[0].detail
    drawn_once = next(
        f
        for f in (layer(seed, outage=0.3, outage_calls=(2, 2), outage_everything=1.0) for seed in range(100))
        if [kinds(a) for a in ask(f.fork(), world(), LOOK, CANCEL, LOOK)] == [["outage"], ["outage"], []]
    )
    assert ask(drawn_once, world(), LOOK)[0].faults[0].detail == "all tools"


def test_a_permission_comes_back_or_does_not() -> None:
    passing = ask(layer(permission=1.0, permission_calls=(2, 2)), world(), LOOK, LOOK, LOOK)
    assert [a.error for a in passing] == [True, True, False] and "suspended" in passing[0].content
    for_good = ask(layer(permission=1.0, permission_for_good=1.0), world(), *[LOOK] * 5)
    assert all(a.error and a.faults[0].detail == "for good" for a in for_good) and "withdrawn" in for_good[0].content


def test_an_undocumented_error_says_nothing_that_anybody_knows() -> None:
    said = {ask(layer(seed, undocumented_error=1.0), world(), LOOK)[0].content for seed in range(60)}
    assert said == {f"Error: {text}" for text in UNDOCUMENTED}


def test_a_read_after_a_write_shows_the_state_before_the_last_one() -> None:
    faults, here = layer(stale_read=1.0), world()
    before, _, after = ask(faults, here, LOOK, CANCEL, LOOK)
    assert (before.content, before.faults) == ("pending", ())
    assert (after.content, kinds(after)) == ("pending", ["stale_read"])
    assert here.toolkit().db["orders"]["#W12"]["status"] == "cancelled"


@pytest.mark.parametrize("kind", ["timeout_after_write", "latency", "undocumented_error"])
def test_looking_whether_a_write_was_carried_out_never_misleads(kind: str) -> None:
    met = 0
    for seed in range(40):
        faults = layer(seed, stale_read=1.0, latency_seconds=(31.0, 40.0), **{kind: 0.5})
        here = world()
        _, lost, look = ask(faults, here, ("cancel", {"order_id": "#W13"}), CANCEL, LOOK)
        if kind in kinds(lost) and not look.error:
            assert look.content == here.toolkit().db["orders"]["#W12"]["status"] and look.faults == ()
            met += 1
    assert met > 3


def test_a_stale_read_that_shows_the_same_is_none() -> None:
    answers = ask(layer(stale_read=1.0), world(), CANCEL, ("look", {"order_id": "#W13"}))
    assert answers[1].content == "shipped" and answers[1].faults == ()


def test_spared_and_generic_tools_and_those_that_are_not_named_always_work() -> None:
    transfer = ("transfer_to_human_agents", {"summary": "x"})
    assert not ask(layer(outage=1.0), world(), transfer)[0].error
    assert not ask(layer(outage=1.0, spared=("look",)), world(), LOOK)[0].error
    answers = ask(layer(outage=1.0, tools=("cancel",)), world(), LOOK, CANCEL)
    assert [kinds(a) for a in answers] == [[], ["outage"]]


def test_the_same_seed_and_calls_meet_the_same_faults_and_other_seeds_others() -> None:
    rates = dict.fromkeys(KINDS, 0.2)
    calls = [LOOK, CANCEL, LOOK, LOOK, ("cancel", {"order_id": "#W13"}), LOOK, LOOK]
    by_seed = [tuple(ask(layer(seed, **rates), world(), *calls)) for seed in range(20)]
    assert by_seed == [tuple(ask(layer(seed, **rates), world(), *calls)) for seed in range(20)]
    assert len(set(by_seed)) > 10


def test_no_rate_changes_the_draws_of_another_kind() -> None:
    calls = [LOOK] * 12
    alone = ask(layer(3, undocumented_error=0.3), world(), *calls)
    beside = ask(layer(3, undocumented_error=0.3, latency=1.0, latency_seconds=(1, 1)), world(), *calls)
    failed = [kinds(a) == ["undocumented_error"] for a in alone]
    assert failed == [kinds(a) == ["undocumented_error"] for a in beside] and any(failed) and not all(failed)


def test_a_copy_goes_on_as_its_original_and_by_itself() -> None:
    rates = dict.fromkeys(KINDS, 0.3)
    for seed in range(10):
        faults, here = layer(seed, **rates), world()
        ask(faults, here, LOOK, CANCEL, LOOK)
        copy, there = faults.fork(), here.fork()
        assert ask(copy, there, LOOK, CANCEL, LOOK) == ask(faults, here, LOOK, CANCEL, LOOK)
        ask(copy, there, LOOK, LOOK)
        assert copy._number == faults._number + 2


class Uncopied(Toy):
    name = "toy"

    def world(self, task: Any = None) -> World:
        return _Uncopied(self, task)


class _Uncopied(World):
    def fork(self) -> World:
        raise ConfigError("a world of toy cannot be copied: it is a server's")


def test_what_cannot_be_done_is_refused_before_the_first_call() -> None:
    with pytest.raises(ConfigError, match="stale_read: a world of toy cannot be copied"):
        layer(stale_read=0.1).check(Uncopied().world(toy_task()))
    layer(outage=0.1).check(Uncopied().world(toy_task()))
    with pytest.raises(ConfigError, match="there is no tool 'lok'; there are look, cancel"):
        layer(outage=0.1, tools=("lok",)).check(world())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"outage": 1.5}, "world.faults.outage"),
        ({"outage_calls": (3, 1)}, "outage_calls"),
        ({"permission_calls": (0, 1)}, "permission_calls"),
        ({"timeout": 0}, "timeout"),
    ],
)
def test_rates_that_are_none_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        FaultRates(**wrong)
    with pytest.raises(ConfigError, match="there is no 'outages'"):
        FaultRates.of({"outages": 0.1})


def test_faults_are_kept_with_messages() -> None:
    fault = ToolFault("latency", ran=True, seconds=4.0, detail="x")
    message = Message("tool", "ok", tool_call_id="1", faults=(fault,))
    assert Message.from_json(message.to_json()) == message
    assert "faults" not in Message("tool", "ok").to_json()
