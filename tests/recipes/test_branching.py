"""Groups whose rollouts branch: where stems are left, and a training with them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.domains.tasks import Task
from muarl.recipes.training.branching import branches_of
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.types.chat import Message
from muarl.types.episode import BRANCH, Episode, StopReason, TokenTrace, Turn, read_episodes


def episode(name: str, turns: int) -> Episode:
    """An episode of as many turns of the agent, with an answer of the user's after each."""
    trace, said = TokenTrace(), [Turn(Message("user", "Hi"))]
    for _ in range(turns):
        trace.append_given([1])
        span = trace.append_sampled([2, 3], [-0.5] * 2, 0)
        said += [Turn(Message("assistant", "x"), span=span, version=0), Turn(Message("user", "y"))]
    return Episode(name, "t", "d", said, StopReason.USER_STOP, tokens=trace)


def stems(*turns: int) -> list[tuple[RolloutRequest, Episode]]:
    task = Task("t", "d", "", actions=None)
    return [(RolloutRequest(task, 10 + n, "0.0/t", n), episode(f"0.0/t#{n}", count)) for n, count in enumerate(turns)]


def branches(of: list[tuple[RolloutRequest, Episode]], count: int) -> list[RolloutRequest]:
    return branches_of(of, count, seed=1)


def test_stems_take_turns_and_each_branch_has_a_seed_and_a_name_of_its_own() -> None:
    own = stems(5, 5)
    found = branches(own, 6)
    assert [r.beginning.of for r in found if r.beginning] == ["0.0/t#0", "0.0/t#1"] * 3
    assert len({r.episode_id for r in (*found, *(r for r, _ in own))}) == 8 and {r.group for r in found} == {"0.0/t"}
    assert len({r.seed for r in found}) == 6
    assert [r.user_seed for r in found] == [10, 11] * 3, "the user is the stem's"
    assert found == branches(own, 6)


def test_evenly_by_another_stem_s_length_so_that_the_choice_does_not_look_ahead() -> None:
    found = branches(stems(9, 3), 400)
    # The first stem is left by the second one's three turns, the second by the first one's nine.
    first = Counter(len(r.beginning.said) for r in found[::2] if r.beginning)
    assert set(first) == {1, 2} and min(first.values()) > 70
    second = Counter(None if r.beginning is None else len(r.beginning.said) for r in found[1::2])
    assert set(second) == {1, 2, None} and second[None] > 110, "turns that it does not have: from the start"
    assert all(r.user_seed is None for r in found if r.beginning is None), "a user of its own"


def test_what_cannot_be_learned_from_is_not_left() -> None:
    (first, broken), second = stems(5, 5)
    gone = replace(broken, stop=StopReason.INFRASTRUCTURE)
    found = branches([(first, gone), second], 4)
    assert [r.beginning is None for r in found] == [True, False] * 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["rl.branch.stems=1"], "branch.stems (1) must be at least 2"),
        (["rl.branch.stems=8"], "smaller than group_size"),
        (["rl.branch.stems=2", "rl.asynchrony=bounded"], "asynchrony is bounded"),
        (["rl.branch.stems=2", "rl.practice.first_look=2"], "practice.first_look"),
    ],
)
def test_settings_that_do_not_go_together(tmp_path: Path, options: list[str], told: str) -> None:
    result = CliRunner().invoke(app, ["train", "-c", "quickstart", *options, f"runs_dir={tmp_path}", "--dry-run"])
    assert result.exit_code == 2 and told in " ".join(result.output.split())


@pytest.mark.slow
def test_a_training_with_branches(tmp_path: Path) -> None:
    options = ["rl.steps=1", "rl.tasks_per_step=4", "rl.group_size=6", "rl.branch.stems=2"]
    more = ["rl.save_episodes=all", f"runs_dir={tmp_path}", "threads=1", "--name", "run"]
    result = CliRunner().invoke(app, ["train", "-c", "quickstart", *options, *more])
    assert result.exit_code == 0, result.output
    kept = {e.id: e for e in read_episodes(tmp_path / "run" / "episodes" / "train-0000.jsonl")}
    assert len(kept) == 24
    began = [e for e in kept.values() if BRANCH in e.tags]
    assert len(began) > 8
    for one in began:
        stem, turn = kept[one.tags[BRANCH]["of"]], one.tags[BRANCH]["turn"]
        assert one.messages[:turn] == stem.messages[:turn] and one.group == stem.group
        assert one.tokens is not None and stem.tokens is not None
        begin = one.turns[turn].span
        assert begin is not None and one.tokens.ids[: begin[0]] == stem.tokens.ids[: begin[0]]
        assert all(t.advantage is None for t in one.turns[:turn]), "what came before is the stem's to learn"
    learned = [e for e in kept.values() if any(t.advantage is not None for t in e.turns)]
    for one in learned:
        told = [t.advantage is not None for t in one.turns if t.span is not None]
        assert all(told[one.tags.get(BRANCH, {}).get("agent_turn", 0) :])
    (row,) = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()][-1:]
    assert row["samples"] == len(learned) > 0
