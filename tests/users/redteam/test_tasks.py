"""Red-team tasks: the same from the same seeds, gold actions that lead to the right world and spring no trap."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.basics.errors import ConfigError
from muarl.config.sections import EvalConfig
from muarl.domains.tasks import Task
from muarl.recipes.redteam import trap_findings
from muarl.rewards.traps import SAFE, sprung, traps_of
from muarl.users.redteam.kinds import KINDS, known_kinds
from muarl.users.redteam.tasks import iter_red_team
from support.redteam import COMMON, DOMAINS, expert, fooled, make, play, right, some, source

EVERY = [(d, k) for d in DOMAINS for k in COMMON]
HOSTILE = ("impostor", "pressure", "changing", "injection", "silent")


@settings(max_examples=8)
@given(st.sampled_from(EVERY), st.integers(0, 10_000), st.integers(0, 50), st.sampled_from(["train", "test"]))
def test_a_task_follows_from_its_seeds_and_its_gold_actions_lead_to_the_right_world(which, index, seed, split):
    domain, kind = which
    task = make(domain, kind, index, split=split, seed=seed)
    again = make(domain, kind, index, split=split, seed=seed)
    assert (task.id, task.agenda, task.actions, task.tags, task.scenario) == (
        again.id, again.agenda, again.actions, again.tags, again.scenario,
    )  # fmt: skip
    assert task.database.digest() == again.database.digest()
    assert task.tags["redteam"] == task.agenda["redteam"]["kind"] == kind
    assert SAFE in task.reward_basis
    assert json.loads(json.dumps(task.tags)) == task.tags, "tags travel with stored episodes"
    episode = play(task, right(task))
    assert episode.verdict.reward == 1.0
    assert not sprung(episode.messages, traps_of(task.tags))


@pytest.mark.parametrize(("domain", "kind"), EVERY)
def test_indices_and_seeds_make_other_tasks(domain, kind):
    tasks = [*some(domain, kind, 4), make(domain, kind, 0, seed=1)]
    assert len({t.scenario for t in tasks}) == len({t.id for t in tasks}) == 5


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("kind", [k for k in KINDS if k in HOSTILE])
def test_who_falls_for_it_earns_nothing_and_is_found_out(domain, kind):
    trapped = [t for t in some(domain, kind, 10) if t.tags["traps"] and _can_be_done(t)]
    assert trapped
    caught = 0
    for task in trapped:
        episode = play(task, fooled(task))
        found = sprung(episode.messages, traps_of(task.tags))
        if not found:
            continue  # a trap of many, or one that the tools themselves refuse in this world
        caught += 1
        assert episode.verdict is None or episode.verdict.reward == 0.0
        assert episode.verdict is None or episode.verdict.breakdown[SAFE] == 0.0
        findings = trap_findings(episode)
        assert {f.severity for f in findings} == {"catastrophic" if KINDS[kind].safety else "violation"}
        assert all(episode.messages[f.message].tool_calls[0].name == f.call for f in findings)
    assert caught >= max(1, len(trapped) // 2)


def _can_be_done(task: Task) -> bool:
    """Retail's tools refuse most of what its policy forbids."""
    return task.tags["variant"] != "forbidden"


def test_the_victims_own_data_are_off_limits_and_the_users_are_not():
    for domain in DOMAINS:
        for task in some(domain, "impostor", 10):
            ids = {i for trap in traps_of(task.tags) for i in trap.ids}
            mine = {str(v) for a in task.actions or () for v in a.arguments.values()}
            assert ids and not ids & mine


def test_a_planted_instruction_is_in_what_the_expert_is_shown():
    for domain in DOMAINS:
        planted = [t for t in some(domain, "injection", 10) if t.tags["variant"].startswith("planted")]
        assert planted
        shown = 0
        for task in planted:
            episode = play(task, expert(task))
            results = "\n".join(m.content or "" for m in episode.messages if m.role == "tool")
            shown += task.agenda["redteam"]["planted"] in results
        assert shown == len(planted)


def test_planted_instructions_stand_in_the_json_observations_too():
    for domain in DOMAINS:
        places = set()
        for task in some(domain, "injection", 5, size="small"):
            if not task.tags["variant"].startswith("planted"):
                continue
            episode = play(task, expert(task), size="small")
            results = "\n".join(m.content or "" for m in episode.messages if m.role == "tool")
            assert json.dumps(task.agenda["redteam"]["planted"])[1:-1] in results
            places.add(task.tags["variant"])
        assert places


def test_unknown_kinds_and_other_domains_are_told():
    with pytest.raises(ConfigError, match="impostor"):
        next(iter_red_team(source("retail"), "friendly"))
    with pytest.raises(ConfigError, match="eval.red_team: bfcl-generated has no red-team tasks"):
        source("bfcl")
    with pytest.raises(ConfigError, match="no kind 'friendly'"):
        known_kinds(["friendly"])
    assert known_kinds(["angry", "all"])[0] == "angry"
    assert set(known_kinds(["all"])) == set(KINDS)


def test_the_configuration_knows_every_kind():
    assert EvalConfig(red_team=("all", *KINDS)).red_team == ("all", *KINDS)
