"""The contract: what must hold of every environment that comes with muarl (muarl_tools.checks.environment)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from muarl.basics.errors import DataError
from muarl.domains.scripted_expert import ErrorProfile
from muarl.environments.registry import find
from muarl_tools.checks.environment.other_process import TaskRequest, fingerprints, fingerprints_elsewhere
from muarl_tools.checks.environment.rules import CHECKS, CheckOutcome, run_check, run_checks
from muarl_tools.checks.environment.samples import CheckContext
from support.environments import BENCHMARKS, MADE, ON_SERVERS
from support.mcp import needs_server

COUNT, MANY = 80, 200
"""Tasks of an environment in the slow tests: at its smallest size, and at its largest."""
FEW = 12
"""Tasks of one environment on a server that are looked at in every run of the tests, at its smallest size; ``COUNT`` of
all in the slow ones, at both."""
ALIKE = ("insurer-knowledge-generated", "utility-knowledge-generated")
"""Environments made by the same code as another: at their smallest size alone."""
ALWAYS = {"retail-generated": 60, "bfcl-generated": 60}
"""Environments that are checked in every run of the tests, by as many tasks as need every tool; the others in the slow
ones."""
RARE = {"telecom-generated": 120}
"""Environments with a tool that hardly any task needs: as many tasks, at the smallest size, as need it."""
IN_TURN = [
    *ALWAYS.items(),
    *(pytest.param(name, RARE.get(name, COUNT), marks=pytest.mark.slow) for name in MADE if name not in ALWAYS),
]
LARGEST = [(name, size) for name in MADE if name not in ALIKE for size in find(name).sizes[1:][-1:]]
WRONG = ("wrong_zip", "wrong_id", "wrong_phone", "wrong_password", "wrong", "impostor")
"""Fields of an agenda for what a user gets wrong."""
REFUSING = ("acebench-generated",)
"""Environments whose tools refuse until something is done that nobody tells an expert before."""
NO_SERVER = ("policy", "tools", "sizes", "vocabulary", "tasks", "splits", "data", "scenarios")
"""Checks for which no server is needed. That another process makes the same tasks is looked at below."""
OF_BENCHMARKS = {"tools", "sizes", "tasks", "data", "scenarios"}
"""What can be checked of a benchmark, whose tasks and tools are as they are."""


def wrong(results: Sequence[CheckOutcome]) -> list[str]:
    """What is wrong, line by line."""
    return [f"{result.check.name}: {problem}" for result in results for problem in result.problems]


def skipped(results: Sequence[CheckOutcome]) -> set[str]:
    return {result.check.name for result in results if result.skipped}


@pytest.mark.parametrize(("name", "count"), IN_TURN)
def test_a_made_environment_keeps_the_contract(name: str, count: int) -> None:
    results = list(run_checks(CheckContext(find(name), name, count=count)))
    assert wrong(results) == []
    environment = find(name)
    silent = set() if environment.audit_rules(environment.make_domain()).consent else {"asking"}
    assert skipped(results) == silent | (set() if environment.red_team else {"red-team"})


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in ALIKE else ()) for n in MADE])
def test_experts_greet_and_meet_errors_only_where_a_user_gives_a_wrong_detail(name: str) -> None:
    environment = find(name)
    assert environment.expert is not None
    greeting = environment.expert(seed=0, error_profile=ErrorProfile()).act([])
    assert greeting.role == "assistant" and greeting.content and not greeting.tool_calls
    for task, episode in CheckContext(environment, name, count=8).expert_episodes():
        assert {"intent", "persona"} <= set(task.tags) and task.tags["split"] == "test" and not task.benchmark
        agenda = task.agenda or {}
        wrong = any(agenda.get(field) for field in WRONG)
        assert episode.verdict is not None
        most = 8 if name in REFUSING else 0
        assert episode.verdict.audit["tool_errors"] <= most + wrong + 2 * bool(agenda.get("impostor")), task.id


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), LARGEST)
def test_it_keeps_the_contract_at_its_largest_size(name: str, size: str) -> None:
    context = CheckContext(find(name), name, size, MANY)
    results = [run_check(check, context) for check in CHECKS if check.name != "red-team"]  # as at the smallest size
    assert wrong(results) == []


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("mcp-git", FEW),
        *(pytest.param(n, COUNT, marks=pytest.mark.slow) for n in ON_SERVERS),
    ],
)
def test_an_environment_on_a_server_keeps_it_as_far_as_no_server_is_needed(name: str, count: int) -> None:
    for size in find(name).sizes[: 1 if count == FEW else None]:
        context = CheckContext(find(name), name, size, count)
        results = [run_check(check, context) for check in CHECKS if check.name in NO_SERVER]
        assert wrong(results) == [] and skipped(results) == set()


@pytest.mark.slow
def test_another_process_makes_the_same_tasks_for_servers() -> None:
    asked = [TaskRequest(name, find(name).sizes[0], "test", 8, 0) for name in ON_SERVERS]
    elsewhere = fingerprints_elsewhere(asked)  # one process for all: starting it takes longest
    assert elsewhere == [fingerprints(one) for one in asked] and all(len(set(of_one)) == 8 for of_one in elsewhere)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [(name, find(name).sizes[-1]) for name in ON_SERVERS])
def test_an_environment_on_a_server_keeps_it_on_its_server(name: str, size: str) -> None:
    needs_server(name)
    ran = run_checks(CheckContext(find(name), name, size, 24))
    results = [r for r in ran if r.check.name != "floors"]  # a share of 24 tasks says little: see domains/mcp
    assert wrong(results) == []
    assert skipped(results) <= {"audit-rules", "bad-calls", "coverage"}


@pytest.mark.data
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_keeps_what_can_be_checked_of_it(install_data: Callable[[str], object], name: str) -> None:
    source = name.partition("-")[0]
    install_data(source)
    try:
        context = CheckContext(find(name), name, count=20)
    except DataError as missing:  # a part of the data that is not at hand
        pytest.skip(str(missing))
    results = list(run_checks(context))
    assert wrong(results) == []
    assert {check.name for check in CHECKS} - skipped(results) == OF_BENCHMARKS


@pytest.mark.parametrize(
    ("name", "size", "split", "index"),
    [("food-delivery-generated", "tiny", "validation", 15), ("airline-generated", "small", "test", 12_000)],
)
def test_a_kind_that_has_no_place_in_its_world_gives_way_to_another(
    name: str, size: str, split: str, index: int
) -> None:
    """A run draws thousands of tasks, and must not end for one that no world can host."""
    task = find(name).make_tasks(split, 1, size=size, start=index)[0]
    assert task.id.endswith(f"-{split}-0-{index}") and task.actions is not None
