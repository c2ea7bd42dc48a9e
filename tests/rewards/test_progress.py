"""How far the world is on the way to its right final state, and credit that is given by it."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from loop_kit import Puppet
from muarl.domains.tasks import Action
from muarl.domains.tooling import tool
from muarl.environments.registry import find
from muarl.learning.branches import Credit
from muarl.recipes.training.turn_credit import state_credit
from muarl.rewards.known_outcomes import PRIOR, KnownOutcomes, state_means
from muarl.rewards.progress import TaskProgress, progress_by_message, progress_of
from muarl.rollouts.conversation import run_episode
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn
from support.short_game import LOGITS, PATHS, TURNS, Path, chance, gradient, reward, score
from support.toy_shop import Lines, Toy, toy_task


class Shop(Toy):
    """A toy shop in which any status can be set, and set back."""

    name = "toy"

    @tool(writes=True)
    def mark(self, order_id: str, status: str) -> str:
        """Set a status.

        order_id: the order
        status: the status
        """
        self.db["orders"][order_id]["status"] = status
        return "done"


def mark(order: str, status: str) -> Message:
    return Message("assistant", None, (ToolCall("c", "mark", {"order_id": order, "status": status}),))


def look() -> Message:
    return Message("assistant", None, (ToolCall("c", "look", {"order_id": "#W12"}),))


TASK = replace(toy_task(), actions=(Action("mark", {"order_id": "#W12", "status": "cancelled"}),))
RIGHT, UNDO, WRONG = mark("#W12", "cancelled"), mark("#W12", "pending"), mark("#W13", "lost")


def progress(*acts: Message) -> list[TaskProgress]:
    """What it is before each of these messages, and before the last one, which says goodbye."""

    async def go() -> Episode:
        agent = Puppet(*acts, Message("assistant", "Bye."))
        shop = Shop()
        return await run_episode(TASK, shop.world(TASK), agent, Lines("Hi", "Yes"))

    episode = asyncio.run(go())
    episode.turns = [
        replace(turn, span=(0, 1)) if n and turn.message.role == "assistant" else turn
        for n, turn in enumerate(episode.turns)
    ]
    found = progress_of(Shop(), TASK, episode)
    assert found is not None and found == progress_by_message(Shop(), TASK, episode)
    return found[: len(acts) + 1]


def test_it_is_read_off_the_state() -> None:
    asks = Message("assistant", "Shall I cancel order #W12? Please say yes or no.")
    assert progress(look(), asks, RIGHT, WRONG, UNDO) == [
        TaskProgress(0, 1, 0, False),
        TaskProgress(0, 1, 0, False),
        TaskProgress(0, 1, 0, True),
        TaskProgress(1, 0, 0, False),
        TaskProgress(1, 0, 1, False),
        TaskProgress(0, 1, 1, False),
    ]


def test_doing_it_again_and_looking_at_everything_is_no_progress() -> None:
    again = progress(RIGHT, RIGHT, look(), look(), UNDO, RIGHT)
    assert [p.right for p in again] == [0, 1, 1, 1, 1, 0, 1] and {p.wrong for p in again} == {0}
    assert [p.key("cancel") for p in progress(RIGHT, WRONG)] == ["cancel 0 1 0 0", "cancel 1 0 0 0", "cancel 1 0 1 0"]


def test_without_a_right_state_there_is_none() -> None:
    task = replace(TASK, actions=None)
    episode = Episode("e", "t", "toy", [], StopReason.USER_STOP)
    assert progress_of(Shop(), task, episode) is None and progress_by_message(Shop(), task, episode) is None
    assert progress_of(Shop(), TASK, episode) == []


def credit(rewards: Sequence[float], keys: Sequence[Sequence[str]], known: KnownOutcomes) -> list[Credit]:
    """Of rollouts from the start that were at these places."""
    turn = Turn(Message("assistant", "x"), span=(0, 1))
    episodes = [Episode(f"e{n}", "t", "d", [turn] * len(own), StopReason.USER_STOP) for n, own in enumerate(keys)]
    return state_credit(rewards, episodes, keys, known)


FARMERS = {
    "repeats a write": [RIGHT, RIGHT, RIGHT],
    "undoes and redoes": [RIGHT, UNDO, RIGHT, UNDO, RIGHT],
    "reads everything": [look(), look(), look(), RIGHT],
    "does wrong and undoes": [WRONG, mark("#W13", "shipped"), RIGHT],
}


@pytest.mark.parametrize("farm", FARMERS)
def test_farmers_gain_nothing(farm: str) -> None:
    """Beside one who just does it, with the same outcome."""
    direct, farmer = progress(RIGHT), progress(*FARMERS[farm])
    keys = [[str(p) for p in own] for own in (direct, farmer)]
    for own in credit([1.0, 1.0], keys, KnownOutcomes()):
        assert set(own.values) == {0.0}
    known = KnownOutcomes()
    for _ in range(8):  # what is known is that it goes well in half of all cases, wherever the world is
        known.note([(1.0, keys[1]), (0.0, keys[1])])
    plain, farmed = credit([1.0, 1.0], keys, known)
    # What the farmer does first is worth no more than going straight on; from where it then is, that it went well may
    # count for more, as for anybody who mends a mistake.
    assert farmed.values[0] <= plain.values[0] and max(farmed.values) <= 0.5


@pytest.mark.parametrize("known", [KnownOutcomes(), KnownOutcomes({"1 1": (0.9, 2.0), "2 0": (-4.0, 8.0)})])
def test_the_expectation_is_the_gradient(known: KnownOutcomes) -> None:
    """What came before a turn, read off in whatever way, leaves the expectation what it is."""

    def keys(path: Path) -> list[str]:
        return [f"{t} {sum(path[:t]) % 2}" for t in range(TURNS)]

    total = np.zeros_like(LOGITS)
    for pair in itertools.product(PATHS, repeat=2):
        weight = math.prod(map(chance, pair))
        rewards = [reward(p) for p in pair]
        for path, own in zip(pair, credit(rewards, [keys(p) for p in pair], known), strict=True):
            for t in range(TURNS):
                total += weight * own.values[t] * score(path, t)
    assert np.allclose(total, 2 * gradient(), atol=1e-12)


def test_what_is_known_fades_and_survives_a_checkpoint() -> None:
    known = KnownOutcomes()
    known.note([(1.0, ["a", "a", "b"]), (0.0, ["a"])])
    assert known.mean("a") == 0.5 and known.mean("b") == 1.0 and known.mean("c") is None
    for _ in range(30):
        known.note([])
    assert known.mean("a") is None, "an eighth of two outcomes is too little"
    known.note([(0.0, ["a"]), (0.0, ["a"])])
    assert 0 < (known.mean("a") or 0) < 0.2
    assert KnownOutcomes.from_json(known.to_json()) == known


def test_the_baseline_is_the_others_at_the_same_place_and_what_is_known_of_it() -> None:
    known = KnownOutcomes({"late": (3.0, 4.0)})
    keys: Sequence[Sequence[str]] = (["start", "late"], ["start", "late"], ["start"])
    first = credit([1.0, 0.0, 0.0], keys, known)[0]
    assert first.values[0] == pytest.approx(1.0 - (0.0 + PRIOR * 0.0) / (2 + PRIOR))
    assert first.values[1] == pytest.approx(1.0 - (0.0 + PRIOR * 0.75) / (1 + PRIOR))
    assert credit([1.0], [["start"]], known)[0].values == (0.0,)


def test_rollouts_that_share_a_beginning_say_nothing_of_each_other() -> None:
    places = [["start", "late"], ["start", "late"], ["start"]]
    means = state_means([1.0, 0.0, 0.5], places, ["a", "a", "b"], KnownOutcomes())
    assert means[:2] == [[0.5, 0.5]] * 2 and means[2] == [0.5]
    assert state_means([1.0, 0.0], places[:2], ["a", "a"], KnownOutcomes()) == [[None, None]] * 2


def test_in_a_made_environment_an_expert_gets_there() -> None:
    environment = find("retail-generated")
    place = environment.place()
    runner = place.runner(place.expert_agent(), place.users())
    ends = []
    for task in environment.make_tasks("train", 12):
        episode = asyncio.run(
            run_episode(
                task, place.domain.world(task), runner.agent, runner.make_user(task, seed=1), rules=runner.rules
            )
        )
        episode.turns = [
            replace(turn, span=(0, 1)) if n and turn.message.role == "assistant" else turn
            for n, turn in enumerate(episode.turns)
        ]
        found = progress_of(place.domain, task, episode)
        assert found is not None and found[0].right == 0 and all(p.wrong == 0 for p in found)
        ends.append(found[-1])
    assert all(p.left == 0 for p in ends) and sum(p.right for p in ends) > 4
