"""Rewards in layers: off unless asked for, penalties once a layer, gates before penalties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.audit.findings import Finding
from muarl.rewards.layered import LAYERS, PREFIX, layered_reward, terms
from muarl.types.episode import Episode, StopReason, Verdict


def episode(reward: float = 1.0, **broken: float) -> Episode:
    audit = {PREFIX + layer: broken.get(layer, 0.0) for layer in LAYERS}
    return Episode("e", "t", "retail", [], StopReason.USER_STOP, verdict=Verdict(reward, {}, audit))


def finding(layer: str, severity: str) -> Finding:
    return Finding(layer, "some-rule", severity, 0, "It was so.")  # type: ignore[arg-type]


def test_a_layer_is_violated_once_and_notes_do_not_count() -> None:
    found = [
        finding("policy", "violation"),
        finding("policy", "violation"),
        finding("safety", "catastrophic"),
        finding("communication", "note"),
        finding("recovery", "violation"),
    ]
    assert terms(found) == {"violated_policy": 1.0, "violated_communication": 0.0, "violated_safety": 1.0}
    assert terms([]) == dict.fromkeys(terms(found), 0.0)


def test_penalties_and_gates() -> None:
    assert layered_reward(1.0, episode(policy=1.0), {"policy": 0.25}, ()) == 0.75
    assert layered_reward(1.0, episode(policy=1.0, safety=1.0), {"policy": 0.25, "safety": 0.5}, ()) == 0.25
    assert layered_reward(1.0, episode(safety=1.0), {"policy": 0.25}, ("safety",)) == 0.0
    assert layered_reward(1.0, episode(safety=1.0), {"safety": 0.25}, ("safety",)) == -0.25
    assert layered_reward(0.0, episode(), {"policy": 1.0}, LAYERS) == 0.0


@given(st.floats(0, 1), st.dictionaries(st.sampled_from(LAYERS), st.sampled_from([0.0, 1.0])))
def test_nothing_changes_unless_asked_for(reward: float, broken: dict[str, float]) -> None:
    assert layered_reward(reward, episode(reward, **broken), dict.fromkeys(LAYERS, 0.0), ()) == reward
    bare = Episode("e", "t", "retail", [], StopReason.USER_STOP, verdict=Verdict(reward))
    assert layered_reward(reward, bare, {}, ()) == reward


@given(
    st.floats(0, 1),
    st.dictionaries(st.sampled_from(LAYERS), st.sampled_from([0.0, 1.0])),
    st.dictionaries(st.sampled_from(LAYERS), st.floats(0, 1)),
    st.sets(st.sampled_from(LAYERS)),
)
def test_breaking_a_rule_never_pays(
    reward: float, broken: dict[str, float], penalties: dict[str, float], gates: set[str]
) -> None:
    clean = layered_reward(reward, episode(reward), penalties, gates)
    assert layered_reward(reward, episode(reward, **broken), penalties, gates) <= clean == reward


def test_a_layer_that_was_not_noted_is_a_defect() -> None:
    bare = Episode("e", "t", "retail", [], StopReason.USER_STOP, verdict=Verdict(1.0))
    with pytest.raises(KeyError, match="violated_safety"):
        layered_reward(1.0, bare, {}, ("safety",))
