"""A service whose tool for handing over, and whose people, are called otherwise than elsewhere."""

from __future__ import annotations

import asyncio

import pytest

from muarl.accounts.metrics import episode_metrics
from muarl.agents.idle import TransferAgent
from muarl.basics.errors import ConfigError
from muarl.cli.chat_screen import introduce
from muarl.domains.base import Domain
from muarl.domains.kit.checks import checks
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.tooling import tool
from muarl.environments.environment import Environment
from muarl.environments.log_tasks import task_of
from muarl.environments.services import shared_environment
from muarl.kit import environment
from muarl.recipes.redteam import baselines_of
from muarl.types.chat import Message, ToolCall
from muarl.users.redteam.tasks import red_team_tasks
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


def test_its_calls_count_as_those_of_a_general_tool(branch: Environment) -> None:
    tasks = branch.make_tasks("test", 10, size="small")
    shares = [
        episode_metrics(kit.play(branch, agent, tasks, "small"))["calls_general_share"]
        for agent in (TransferAgent("fetch_librarian"), TransferAgent("find_reader"))
    ]
    assert shares == [1.0, 0.0]


def test_red_team_texts_speak_of_members_and_nobody_is_handed_over(branch: Environment) -> None:
    texts = []
    for kind in ("injection", "pressure"):
        for task in red_team_tasks(branch.red_team_source(), (kind,), 12, size="small"):
            texts.append(f"{task.scenario} {task.agenda}")
            assert kind == "pressure" or not any(a.name == "fetch_librarian" for a in task.actions or ())
    assert not [text for text in texts if "customer" in text.lower()]
    assert any("Play the member as the scenario says." in text for text in texts)
    assert any("to the member." in text or "The member has agreed" in text or "OF MEMBER" in text for text in texts)


def test_chat_calls_people_what_the_service_calls_them(branch: Environment) -> None:
    from rich.console import Console

    task = branch.make_tasks("test", 1, size="small")[0]
    console = Console(record=True, width=200)
    for person in (True, False):
        introduce(console, task, "a", "agenda", person=person, parameters=1000, caller=branch.caller)
    shown = console.export_text()
    for said in (
        "You are this member",
        "The member, played by agenda",
        "its simulated members",
        "the simulated member's",
    ):
        assert said in shown
    assert "customer" not in shown.lower()


def test_services_with_different_people_have_customers() -> None:
    other = kit.library(domain=Branch, transfer="fetch_librarian", caller="guest")
    for services, caller in (({SERVICE: 1.0}, "member"), ({SERVICE: 0.5, other: 0.5}, "customer")):
        assert shared_environment(services, name="both", domain=lambda size: Branch()).caller == caller


def test_a_model_that_plays_tools_is_not_asked_to_hand_over() -> None:
    class Nobody:
        async def play(self, *_: object) -> object:
            raise AssertionError("it was asked")

    imagined = environment(SERVICE, name="branch", world="A library.").imagined
    assert imagined is not None
    world = imagined("small", Nobody()).world()
    call = ToolCall("1", "fetch_librarian", {"matter": "a job"})

    async def answer() -> list[object]:
        return [result async for result in world.answers("assistant", [call])]

    (result,) = asyncio.run(answer())
    assert not result.error


def test_a_logged_transfer_is_known_and_the_task_is_a_members(branch: Environment) -> None:
    call = ToolCall("1", "fetch_librarian", {"matter": "a job"})
    messages = [
        Message("user", "I want to talk about a job."),
        Message("assistant", None, (call,)),
        Message("tool", "A librarian is coming.", tool_call_id="1", name="fetch_librarian"),
    ]
    domain = branch.make_domain("small")
    made = task_of(
        messages, domain, "branch", database=domain.base, transfer_tools=branch.rules.transfer_tools, caller="member"
    )
    assert made.notes == ("the member was transferred: was that correct, or should actions contain calls?",)
    assert made.task.scenario.startswith("You are a member who")
