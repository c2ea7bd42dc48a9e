"""A service whose tool for handing over, and whose people, are called otherwise than elsewhere."""

from __future__ import annotations

import pytest

from muarl.agents.idle import TransferAgent
from muarl.domains.base import Domain, tool
from muarl.domains.kit.checks import checks
from muarl.domains.kit.tasks import TaskMaker
from muarl.environments.environment import Environment
from muarl.errors import ConfigError
from muarl.kit import environment
from muarl.recipes.redteam import baselines_of
from support import kit

NOT_COPIED = ("transfer_to_human_agents", "__dict__", "__weakref__")
Bare = type("Bare", (Domain,), {name: one for name, one in vars(kit.Library).items() if name not in NOT_COPIED})
"""The library without a tool that hands over."""


class Branch(Bare):  # type: ignore[misc, valid-type]
    """A library whose transfer tool has another name and another argument."""

    @tool(kind="generic")
    def fetch_librarian(self, matter: str) -> str:
        """Hand the member over to a librarian.

        matter: what it is about
        """
        return "A librarian is coming."


SERVICE = kit.library(domain=Branch, transfer="fetch_librarian", caller="member")


@pytest.fixture(scope="module")
def branch() -> Environment:
    return environment(SERVICE, name="branch")


def test_tasks_expert_and_audit_hand_over_by_that_tool(branch: Environment) -> None:
    tasks = branch.make_tasks("test", 60, size="small")
    outside = [task for task in tasks if task.tags["intent"] == "outside"]
    assert outside and all(task.actions[-1].name == "fetch_librarian" for task in outside)
    assert outside[0].actions[-1].arguments["matter"].startswith("The member wants to talk about ")
    episodes = kit.expert(branch, tasks, "small")
    assert kit.mean(episodes) == 1.0
    assert branch.audit_rules().transfer_tools == {"fetch_librarian"}


def test_a_transfer_ends_the_conversation_and_is_a_floor(branch: Environment) -> None:
    domain = branch.make_domain("small")
    assert branch.rules.transfer_tool(domain.tool_names()) == "fetch_librarian"
    assert list(baselines_of(domain, branch.rules)) == ["do_nothing", "always_transfer"]
    tasks = branch.make_tasks("test", 10, size="small")
    played = kit.play(branch, TransferAgent("fetch_librarian"), tasks, "small")
    assert all(kit.calls(episode, "fetch_librarian") for episode in played)


def test_a_tool_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ConfigError, match="transfer: the domain has no tool 'fetch_librarians'.*did you mean"):
        kit.library(domain=Branch, transfer="fetch_librarians")


def test_the_check_says_where_nobody_can_be_handed_over() -> None:
    def found(service: kit.Service):
        check = next(c for c in checks(TaskMaker(service)) if c.name == "transfer")
        return check.look(None)

    assert "fetch_librarian" in found(SERVICE).measured and not found(SERVICE).problems
    unnamed = found(kit.library(domain=Branch, outside=("a job",)))
    assert [p.what.split(",")[0] for p in unnamed.problems] == ["its plan hands users over", "outside has 1 topics"]
    assert 'Service(transfer="TOOL")' in unnamed.problems[0].remedy
