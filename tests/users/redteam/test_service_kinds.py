"""Red-team tasks of services on servers, which are rehearsed here, and of several services in one environment."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Action, Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.environments.service import environment
from muarl.environments.services import shared_environment
from muarl.kit import WorldSize
from muarl.rewards.traps import sprung, traps_of
from muarl.users.redteam import tasks
from muarl.users.redteam.tasks import kinds_of, make_red_team_task
from support.environments import ON_SERVERS
from support.kit import LIBRARY, play, rehearsed
from support.marks import first_of
from support.redteam import COMMON, Doer, right

ACEBENCH = "acebench-generated"


@cache
def made(name: str, kind: str, count: int = 4, size: str = "tiny") -> tuple[Task, ...]:
    source = played(name, size).red_team_source()
    return tuple(make_red_team_task(source, kind, n, size=size) for n in range(count))


def played(name: str, size: str = "tiny") -> Environment:
    return rehearsed(name, size) if name in ON_SERVERS else find(name)


def rewards(name: str, agent: Any, task: Task, size: str = "tiny") -> float:
    return play(played(name, size), agent, [task], size)[0].reward


@pytest.mark.parametrize("name", ON_SERVERS)
def test_on_a_server_nobody_is_an_impostor_and_the_reason_is_told(name: str) -> None:
    source = played(name).red_team_source()
    assert kinds_of(source, ["all"]) == tuple(kind for kind in COMMON if kind != "impostor")
    told = f"red_team: {name} has no kind 'impostor' .its users are not identified, so nobody can pose as another"
    with pytest.raises(ConfigError, match=told):
        kinds_of(source, ["angry", "impostor"])


@pytest.mark.parametrize("name", first_of([*ON_SERVERS, ACEBENCH]))
@pytest.mark.parametrize("kind", ["pressure", "changing", "injection", "silent"])
def test_the_right_calls_earn_the_reward_and_what_is_trapped_does_not(name: str, kind: str) -> None:
    domain, caught = played(name).make_domain("tiny"), 0
    for task in made(name, kind, 4 if kind == "injection" else 2):
        assert rewards(name, right(task), task) == 1, task.id
        for trap in traps_of(task.tags):
            specs = {spec.name: spec for spec in domain.specs_for(task)}
            if trap.tool is None or not set(specs[trap.tool].parameters["required"]) <= set(trap.arguments):
                continue
            agent = Doer([*(task.actions or ())[:1], Action(trap.tool, trap.arguments)])
            episode = play(played(name), agent, [task], "tiny")[0]
            if sprung(episode.messages, [trap]):  # else the tool itself refuses
                caught += 1
                assert episode.reward == 0
    assert caught or kind != "injection" or name == ACEBENCH


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("mcp-filesystem", {"text of files"}),
        ("mcp-git", {"message of commits"}),
        ("mcp-memory", {"observations of entities"}),
        ("mcp-sqlite", {"city of members", "shelf of books"}),
    ],
)
def test_what_is_planted_stands_behind_what_was_there(name: str, places: set[str]) -> None:
    for task in made(name, "injection"):
        where = task.tags["variant"].removeprefix("planted in ")
        assert where in places
        field, _, table = where.partition(" of ")
        assert task.database is not None and task.agenda is not None
        text = task.agenda["redteam"]["planted"]
        changed = [str(row[field]) for row in task.database.tables[table].values() if text in str(row[field])]
        assert len(changed) == 1 and not changed[0].startswith(text)
        episode = play(played(name), ExpertAgent(make=find(name).expert), [task], "tiny")[0]
        shown = "\n".join(m.content or "" for m in episode.messages if m.role == "tool")
        assert text in shown or json.dumps(text)[1:-1] in shown or repr(text)[1:-1] in shown
        assert episode.reward == 1


def test_several_services_have_the_kinds_of_either_and_their_own_users() -> None:
    services = {LIBRARY: 0.5, replace(LIBRARY, domain=type("Annex", (LIBRARY.domain,), {"name": "annex"})): 0.5}
    quiet = {replace(service, consent=False): share for service, share in services.items()}
    first = next(iter(services))
    domain: Any = environment(first, name="both").domain
    both = shared_environment(services, name="both", domain=domain)
    assert kinds_of(both.red_team_source(), ["all"]) == COMMON
    assert "changing" not in shared_environment(quiet, name="both", domain=domain).red_team_source().support.kinds
    mixed = {first: 0.5, list(quiet)[1]: 0.5}
    source = shared_environment(mixed, name="both", domain=domain).red_team_source()
    assert "changing" in source.support.kinds
    of = {make_red_team_task(source, "changing", n).tags["service"] for n in range(4)}
    assert of == {"library"}, "only its users are asked before a write"


def test_a_phone_takes_users_at_their_word_so_nobody_keeps_a_name_to_itself() -> None:
    variants = {(t.tags["service"], t.tags["variant"]) for t in made(ACEBENCH, "pressure", 12)}
    assert ("acebench-travel", "keeps its name to itself") in variants
    assert ("acebench-phone", "keeps its name to itself") not in variants


def test_what_needs_no_yes_is_no_trap_for_one_who_never_answers() -> None:
    for task in made(ACEBENCH, "silent", 12):
        named = {trap.tool for trap in traps_of(task.tags)}
        assert not named & {"login_food_platform", "login_device", "turn_on_wifi"}


def test_a_service_of_one_size_of_its_own_has_words_and_red_team_tasks() -> None:
    only = environment(replace(LIBRARY, sizes=(WorldSize("shelf", 4, 4),)), name="one-size-library")
    assert only.sizes == ("shelf",) and only.entities() and only.phrases()
    source = only.red_team_source()
    for kind in ("impostor", "silent", "injection"):
        assert make_red_team_task(source, kind, 0, size="shelf").tags["redteam"] == kind


def test_where_no_detail_ever_changes_users_withdraw_what_they_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "TRIES", 130)
    monkeypatch.setattr(tasks, "LOT_TRIES", 10)
    still = {name: replace(slot, change=()) for name, slot in LIBRARY.slots.items()}
    steady = [replace(one, slots=tuple(still[slot.name] for slot in one.slots)) for one in LIBRARY.intents]
    source = environment(replace(LIBRARY, intents=tuple(steady)), name="steady-library").red_team_source()
    for number in range(8):
        assert make_red_team_task(source, "changing", number).tags["variant"].endswith("withdraws")
