"""Groups that are looked at first: which are played to their end, in what place, and what may be said of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.config.rl import RlConfig
from muarl.domains.tasks import Task
from muarl.recipes.training.first_look import DrawnTasks, FirstLook, StepRollouts, first_figures, look_first, play_all
from muarl.recipes.training.pipeline import StepData
from muarl.rollouts.episode_runner import RolloutRequest
from muarl.rollouts.rollout import Groups
from muarl.types.episode import Episode, StopReason, Verdict


def settings(look: int = 2, looks: int = 3) -> RlConfig:
    options = [f"rl.practice.first_look={look}", f"rl.practice.looks={looks}", "rl.practice.repeat=0"]
    return load_config("quickstart", [*options, "rl.tasks_per_step=4", "rl.group_size=6"]).rl


class Rollouts:
    """Draws tasks t0, t1, ... and plays them: those of ``right`` always succeed, those of ``lost`` are not scored, and
    others succeed in every third rollout."""

    def __init__(self, right: Sequence[int] = (), lost: Sequence[int] = (), same: bool = False) -> None:
        self.right, self.lost, self.same = {f"t{n}" for n in right}, {f"t{n}" for n in lost}, same
        self.draws: list[int] = []
        self.calls: list[list[str]] = []

    def draw(self, number: int) -> DrawnTasks:
        self.draws.append(number)
        start = 0 if self.same else number * 4
        return [Task(f"t{n}", "d", "", (), tags={"intent": "return"}) for n in range(start, start + 4)], None

    async def play(self, requests: Sequence[RolloutRequest]) -> list[Episode]:
        self.calls.append([r.episode_id for r in requests])
        return [self.episode(r) for r in requests]

    def episode(self, r: RolloutRequest) -> Episode:
        good = r.task.id in self.right or r.number % 3 == 0
        lost = r.task.id in self.lost
        stop = StopReason.INFRASTRUCTURE if lost else StopReason.USER_STOP
        verdict = None if lost else Verdict(float(good))
        return Episode(r.episode_id, r.task.id, "d", [], stop, group=r.group, verdict=verdict)

    def run(self, rl: RlConfig) -> FirstLook:
        return asyncio.run(look_first(rl, self.draw, self.play, 0, seed=0, label="5.0"))


def tasks_of(episodes: Sequence[Episode]) -> dict[str, int]:
    return dict(Counter(e.task_id for e in episodes))


def test_groups_that_begin_all_right_give_way_to_others() -> None:
    rollouts = Rollouts(right=[0, 2, 4])
    looked = rollouts.run(settings())
    assert tasks_of(looked.filled) == {"t1": 6, "t3": 6, "t5": 6, "t8": 6}
    assert tasks_of(looked.unfilled) == {"t0": 2, "t2": 2, "t4": 2}
    assert [t.id for t in looked.tasks] == ["t0", "t1", "t2", "t3", "t4", "t5", "t8"]
    assert rollouts.draws == [0, 1, 2]
    assert [len(call) for call in rollouts.calls] == [8, 4, 2, 16], "looks, as many as places are free, and the rest"
    assert rollouts.calls[0][:3] == ["5.0.0/t0#0", "5.0.0/t0#1", "5.0.0/t1#0"]
    assert [e.id for e in looked.filled[:6]] == [f"5.0.0/t1#{n}" for n in range(6)]
    assert rollouts.run(settings()) == looked, "the same again"


def test_nothing_gives_way_where_first_rollouts_differ_fail_or_are_lost() -> None:
    rollouts = Rollouts(lost=[1])
    looked = rollouts.run(settings())
    assert tasks_of(looked.filled) == dict.fromkeys(("t0", "t1", "t2", "t3"), 6) and not looked.unfilled
    assert rollouts.draws == [0]


def test_the_limit_leaves_places_free_but_never_all() -> None:
    some = Rollouts(right=[*range(1, 12)])
    looked = some.run(settings())
    assert tasks_of(looked.filled) == {"t0": 6} and len(looked.unfilled) == 2 * 9
    assert some.draws == [0, 1, 2]
    none = Rollouts(right=range(12)).run(settings(looks=2))
    assert tasks_of(none.filled) == {"t0": 6} and len(none.tasks) == 8


def test_a_task_is_looked_at_once_in_a_step() -> None:
    rollouts = Rollouts(right=[0, 1], same=True)
    looked = rollouts.run(settings())
    assert [t.id for t in looked.tasks] == ["t0", "t1", "t2", "t3"]
    assert tasks_of(looked.filled) == {"t2": 6, "t3": 6}


def test_figures_come_from_the_first_rollouts_of_the_first_draw() -> None:
    rollouts = Rollouts(right=[0, 2, 4])
    looked = rollouts.run(settings())
    step = StepRollouts(StepData(Groups([]), [*looked.filled, *looked.unfilled]), [looked], settings().practice)
    figures = step.figures(None)
    assert figures["success"] == figures["reward"] == 0.75, "two of four all right, two half right in two rollouts"
    assert figures["practice/played_success"] == (4 * 2 + 3 * 2) / 30
    assert (figures["practice/groups_looked"], figures["practice/groups_filled"]) == (7.0, 4.0)


def test_first_figures_weigh_tasks_alike_and_tell_domains_apart() -> None:
    def episode(task: str, domain: str, reward: float, lost: bool = False) -> Episode:
        stop = StopReason.INFRASTRUCTURE if lost else StopReason.USER_STOP
        verdict = None if lost else Verdict(reward)
        return Episode("e", task, "d", [], stop, group=task, verdict=verdict, tags={"domain": domain})

    episodes = [episode("a", "x", 1.0), episode("a", "x", 0.0, True), episode("b", "y", 0.0), episode("b", "y", 1.0)]
    found = first_figures(episodes)
    assert (found["success"], found["domain/x/success"], found["domain/y/reward"]) == (0.75, 1.0, 0.5)
    assert first_figures([episode("a", "x", 0.0, True)]) == {}


def test_without_it_everything_is_played_and_nothing_said() -> None:
    rollouts, rl = Rollouts(right=range(12)), settings(look=0)
    looked = asyncio.run(play_all(rl, rollouts.draw, rollouts.play, 3, seed=0, label="5.0"))
    assert rollouts.draws == [3] and len(rollouts.calls) == 1 and rollouts.calls[0][0] == "5.0/t12#0"
    assert tasks_of(looked.filled) == {f"t{n}": 6 for n in range(12, 16)} and not looked.unfilled
    assert StepRollouts(StepData(Groups([]), looked.filled), [looked], rl.practice).figures(None) == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["rl.practice.first_look=8"], r"practice.first_look \(8\) must be smaller than group_size \(8\)"),
        (["rl.practice.first_look=2", "rl.asynchrony=bounded"], "practice.first_look follows the steps one by one"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(options: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_config("quickstart", ["rl.practice.repeat=0", *options])
