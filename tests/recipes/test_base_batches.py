"""Batches of a base checkpoint: how often what is read, drills, and going on from a checkpoint."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.learning.packing import Sample
from muarl.recipes.base_batches import Batches, copy_drill, how_often, recall_drill, shuffled, thinned

ENTITIES = list(range(100, 160))


@pytest.mark.parametrize(
    ("tags", "often"),
    [
        ({}, 1.0),
        ({"difficulty": 1, "feasible": True}, 1.0),
        ({"difficulty": 3, "feasible": True}, 9.0),
        ({"difficulty": 1, "feasible": False}, 3.0),
    ],
)
def test_difficult_conversations_are_read_more_often(tags: dict[str, object], often: float) -> None:
    assert how_often(tags, 3.0) == often
    assert how_often(tags, 1.0) == 1.0


@given(st.lists(st.sampled_from([1.0, 2.0, 4.0, 16.0]), min_size=1, max_size=60), st.integers(0, 999))
def test_each_is_drawn_as_often_as_its_weight_says(often: list[float], seed: int) -> None:
    numbers = shuffled(random.Random(seed), often)
    assert len(numbers) == len(often) or abs(len(numbers) - len(often)) == 1  # a sum of floats may fall short
    for number, weight in enumerate(often):
        expected = weight * len(often) / sum(often)
        assert abs(numbers.count(number) - expected) < 1 + 1e-6


def test_equal_weights_give_a_permutation() -> None:
    assert sorted(shuffled(random.Random(3), [2.0] * 20)) == list(range(20))


@given(st.integers(0, 999))
def test_a_drill_in_recalling_marks_what_stood_there_before(seed: int) -> None:
    drill = recall_drill(random.Random(seed), ENTITIES)
    things, marks = drill.ids[::2], drill.ids[1::2]
    assert {*marks} == {ENTITIES[0], ENTITIES[1]}
    assert [ENTITIES[thing in things[:n]] for n, thing in enumerate(things)] == marks


@given(st.integers(0, 999))
def test_a_drill_in_copying_says_pieces_of_its_line_again(seed: int) -> None:
    drill = copy_drill(random.Random(seed), ENTITIES)
    assert len(drill.ids) >= 200 and {*drill.ids} <= {*ENTITIES}
    line = len(drill.ids) - len([i for i in range(len(drill.ids)) if i >= len({*drill.ids})])
    assert {*drill.ids[line:]} <= {*drill.ids[:line]}


@given(st.floats(0.1, 1.0), st.integers(0, 100))
def test_fewer_of_the_others_tokens_weigh_as_much_on_average(share: float, seed: int) -> None:
    sample = Sample(list(range(4000)), [0.0, 1.0, 0.1, 0.1] * 1000)
    found = thinned(random.Random(seed), sample, share)
    assert found.ids == sample.ids
    assert found.weights[0::4] == [0.0] * 1000 and found.weights[1::4] == [1.0] * 1000
    others = [*found.weights[2::4], *found.weights[3::4]]
    assert {round(w, 9) for w in others} <= {0.0, round(0.1 / share, 9)}
    assert sum(others) == pytest.approx(200, rel=0.5)


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_batches_go_on_from_their_state(share: float) -> None:
    samples = [Sample([n, n + 1, n + 2], [0.0, 0.1, 1.0]) for n in range(40)]
    often = [1.0 + n % 3 for n in range(40)]
    batches = Batches(samples, often, ENTITIES, 16, seed=5, others=share)
    for _ in range(4):
        batches.draw()
    state = json.loads(json.dumps(batches.state()))
    wanted = [[(s.ids, s.weights) for s in batches.draw()] for _ in range(6)]
    other = Batches(samples, often, ENTITIES, 16, seed=0, others=share)
    other.restore(state)
    assert [[(s.ids, s.weights) for s in other.draw()] for _ in range(6)] == wanted
    assert all(len(batch) == 16 for batch in wanted)
