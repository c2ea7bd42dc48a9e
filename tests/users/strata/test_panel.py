"""Personas by strata: each value does something, the same seed draws the same persona, and off changes nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError
from muarl.config.section import UserConfig
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.environments.places import Places
from muarl.environments.registry import find
from muarl.users.agenda import AgendaUserFactory
from muarl.users.llm import LLMUserFactory
from muarl.users.strata.panel import Strata, panel, read_panel
from muarl.users.traits.levels import TAG, TRAITS, TraitRanges, Traits
from support.trait_talks import drawn, said, talks

AGENDA = [name for name, stratum in panel().items() if stratum.changes("agenda")]
DIFFERS_IN = {"care": 12, "language": 8}
"""Conversations in which values must have shown a difference; of others fewer are enough."""


def only(name: str, value: str, kind: str = "agenda") -> Strata:
    return Strata.of({name: {value: 1.0}}, kind)  # type: ignore[arg-type]


@cache
def spoken(name: str, value: str) -> str:
    """What users of one value say to the expert."""
    environment = find("retail-generated")
    users = AgendaUserFactory(environment.rule_based_user, strata=only(name, value))
    return repr(said(talks("retail-generated", {}, DIFFERS_IN.get(name, 4), users=users)))


# each value does something


@pytest.mark.parametrize("name", AGENDA)
def test_rule_based_users_of_different_values_say_different_things(name: str) -> None:
    for one, other in combinations(panel()[name].values, 2):
        assert spoken(name, one.name) != spoken(name, other.name), f"{one.name} and {other.name}"


@pytest.mark.parametrize("name", panel())
def test_language_models_are_told_different_things(name: str) -> None:
    endpoint = Endpoint(EndpointSettings(model="m", base_url="http://localhost:1/v1"))
    task = drawn("retail-generated", 1)[0]
    prompts = set()
    for value in panel()[name].values:
        user = LLMUserFactory(endpoint, strata=only(name, value.name, "llm"))(task, seed=3)
        prompts.add(user._user.system)  # type: ignore[attr-defined]
    assert len(prompts) == len(panel()[name].values)
    assert all("# What you are like" in p and "what counts in the end is the scenario" in p for p in prompts)
    asyncio.run(endpoint.aclose())


def test_what_does_nothing_to_rule_based_users_is_not_drawn_for_them() -> None:
    assert "register" in panel() and "register" not in AGENDA
    assert [s.name for s in Strata.of({"all": {}}, "agenda").strata] == AGENDA
    assert [s.name for s in Strata.of({"all": {}}, "llm").strata] == [*panel()]
    with pytest.raises(ConfigError, match=r"register does nothing to agenda users.*user\.kind=llm"):
        Strata.of({"register": {}}, "agenda")


# draws


def test_a_persona_follows_from_the_seed_and_a_further_stratum_changes_no_other() -> None:
    few, all_of_them = Strata.of({"patience": {}}, "llm"), Strata.of({"all": {}}, "llm")
    for seed in range(50):
        persona = all_of_them.draw(seed)
        assert persona == all_of_them.draw(seed)
        assert persona.values["patience"] == few.draw(seed).values["patience"]


def test_values_are_drawn_by_their_weights() -> None:
    strata = Strata.of({"patience": {"hurried": 1, "patient": 3}}, "agenda")
    counts = Counter(strata.draw(seed).values["patience"] for seed in range(2000))
    assert set(counts) == {"hurried", "patient"} and 1400 < counts["patient"] < 1600
    assert str(strata) == "strata patience (hurried 1, patient 3)"


def test_all_with_weights_of_one() -> None:
    strata = Strata.of({"all": {}, "language": {"english": 1}}, "agenda")
    assert {strata.draw(seed).values["language"] for seed in range(50)} == {"english"}
    assert len(strata.strata) == len(AGENDA)


def test_a_persona_decides_its_traits_and_leaves_the_others() -> None:
    persona = only("language", "french").draw(0)
    assert persona.on(Traits(mistakes=0.3)) == Traits(mistakes=0.3, foreign_language=0.6, language="fr")
    assert persona.on(None) == Traits(foreign_language=0.6, language="fr")


# episodes


def test_episodes_carry_the_values() -> None:
    environment = find("retail-generated")
    strata = Strata.of({"patience": {}, "style": {}}, "agenda")
    users = AgendaUserFactory(environment.rule_based_user, strata=strata, traits=TraitRanges.of({"mistakes": 0.4}))
    assert users.name == "agenda(seed=0, mistakes 0.4, strata patience, style)"
    for episode in talks("retail-generated", {}, 4, users=users):
        values = episode.tags["strata"]
        assert values.keys() == {"patience", "style"}
        assert episode.tags["persona"] == {"vague": "confused"}.get(values["style"], values["style"])
        assert episode.tags[TAG] == {t: 0.4 if t == "mistakes" else 0.0 for t in TRAITS if t != "impatience"}


def test_without_strata_nothing_changes() -> None:
    environment = find("retail-generated")
    plain = AgendaUserFactory(environment.rule_based_user)
    none = AgendaUserFactory(environment.rule_based_user, strata=Strata.of({}, "agenda"))
    assert none.name == plain.name
    before, now = (talks("retail-generated", {}, 4, users=users) for users in (plain, none))
    assert said(before) == said(now) and [e.tags for e in before] == [e.tags for e in now]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["retail-generated", "telecom-generated"])
def test_the_expert_serves_users_of_all_strata(name: str) -> None:
    users = AgendaUserFactory(find(name).rule_based_user, strata=Strata.of({"all": {}}, "agenda"))
    episodes = [e for e in talks(name, {}, 60, users=users) if not e.tags.get("user_gave_up")]
    assert len(episodes) >= 50 and sum(e.reward == 1 for e in episodes) >= 0.95 * len(episodes)


# settings


def test_settings_name_strata_in_several_ways() -> None:
    assert UserConfig().strata == {}
    assert UserConfig(strata="all").strata == {"all": {}}
    assert UserConfig(strata=["patience", "style"]).strata == {"patience": {}, "style": {}}
    assert UserConfig(strata={"patience": {"hurried": 1, "patient": 3}, "care": None}).strata == {
        "patience": {"hurried": 1.0, "patient": 3.0}, "care": {},
    }  # fmt: skip
    again = UserConfig.model_validate(UserConfig(strata="all").model_dump(mode="json"))
    assert again.strata == {"all": {}}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"strata": ["age"]}, "no stratum 'age'.*patience"),
        ({"strata": {"patience": {"calm": 1}}}, r"user\.strata\.patience: there is no value 'calm'.*hurried"),
        ({"strata": ["care"], "traits": {"mistakes": 0.5}}, r"care and user\.traits\.mistakes decide the same"),
        ({"strata": ["style"], "persona": "terse"}, r"style and user\.persona decide the same"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_anybody_speaks(given: dict[str, object], told: str) -> None:
    places = Places([find("retail-generated").place()])
    with pytest.raises(ConfigError, match=told):
        make_users(UserConfig.model_validate(given), places)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "scripted", "strata": "all"}, "strata: scripted users have none"),
        ({"strata": {"patience": {"hurried": 0}}}, "greater than 0"),
        ({"strata": [1]}, "name strata"),
    ],
)
def test_what_is_no_setting_is_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        UserConfig.model_validate(given)


def test_users_that_follow_a_script_have_no_strata() -> None:
    scripted = find("bfcl-generated")
    users = AgendaUserFactory(scripted.rule_based_user, strata=Strata.of({"patience": {}}, "agenda"))
    with pytest.raises(ConfigError, match=r"user\.strata.*user\.kind=llm"):
        users(scripted.make_tasks("test", 1)[0], seed=0)


# the file


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ("a: {weight: 1, traits: {mistakes: 0.1}}\n    b: {weight: 1, told: Hm.}", "same traits"),
        ("a: {weight: 1, traits: {mistakes: 2}}", "level from 0 to 1"),
        ("a: {weight: 1, persona: polite}", "persona must be one of"),
        ("a: {weight: 1, traits: {mistakes: 0}}", "does nothing to language models"),
        ("a: {weight: 0, told: Hm.}", "weight above 0"),
        ("a: {weight: 1, told: Hm., language: tlh}", "language must be one of"),
    ],
)
def test_a_panel_that_says_nothing_or_two_things_is_refused(tmp_path: Path, values: str, told: str) -> None:
    file = tmp_path / "panel.yaml"
    file.write_text(f"one:\n  about: this\n  values:\n    {values}\n")
    with pytest.raises(ConfigError, match=told):
        read_panel(file)


def test_two_strata_do_not_decide_one_trait(tmp_path: Path) -> None:
    file = tmp_path / "panel.yaml"
    one = "about: this\n  values:\n    a: {weight: 1, traits: {mistakes: 0.1}}\n"
    file.write_text(f"one:\n  {one}two:\n  {one}")
    with pytest.raises(ConfigError, match="one and two both set mistakes"):
        read_panel(file)
