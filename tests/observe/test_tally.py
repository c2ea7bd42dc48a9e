"""The figures beside an evaluation's bar."""

from __future__ import annotations

from muarl.observe.progress import Tally
from muarl.types.episode import Episode, StopReason, Usage, Verdict


def episode(reward: float | None, cost: float = 0.0) -> Episode:
    verdict = None if reward is None else Verdict(reward)
    return Episode("e", "t", "retail", [], StopReason.USER_STOP, verdict=verdict, agent_usage=Usage(cost=cost))


def test_success_is_given_by_its_bounds_until_all_episodes_are_in() -> None:
    tally = Tally(60)
    assert tally.figures == {}
    tally.add(episode(1.0))
    tally.add(episode(1.0))
    assert tally.figures == {"success": "at least 3.3%, at most 100.0%"}, "not 100%: the short ones end first"
    tally.add(episode(0.0))
    assert tally.figures == {"success": "at least 3.3%, at most 98.3%"}
    for n in range(57):
        tally.add(episode(float(n < 45)))
    assert tally.figures == {"success": "78.3%"}


def test_what_failed_is_in_no_success_and_what_was_kept_counts() -> None:
    tally = Tally(4, [episode(1.0, cost=0.5), episode(None)])
    assert tally.figures == {"success": "at least 33.3%, at most 100.0%", "failed": 1, "cost": "$0.50"}
    tally.add(episode(0.0))
    tally.add(episode(None))
    assert tally.figures == {"success": "50.0%", "failed": 2, "cost": "$0.50"}


def test_the_last_cause_of_failure_stands_beside_its_count() -> None:
    failed = episode(None)
    failed.error = (
        "agent: endpoint m at http://127.0.0.1:8100/v1: unreachable (All connection attempts failed); check that the "
        "server runs and that the address is right (gave up after 6 attempts)"
    )
    tally = Tally(4, [failed, episode(None)])
    assert tally.figures["failed"] == "2 (last: agent: unreachable (All connection attempts failed))"
    failed.error = "user: " + "no answer " * 20
    tally.add(failed)
    assert len(str(tally.figures["failed"])) < 80
