"""One kind of finding in all checks, one replay of actions, and one way of telling what was found."""

from __future__ import annotations

import pytest

from muarl.domains.checking import Check, CheckFinding, CheckReport, Fix, Problem
from muarl.domains.tasks import Action
from muarl.environments.registry import find
from muarl.moved import name_of_today
from muarl_tools.checks.environment.rules import run_check
from muarl_tools.checks.environment.samples import CheckContext
from muarl_tools.checks.gold_replay import gold_ending, replayed
from muarl_tools.checks.printing import html_of, lines_of
from support.checked_tasks import RIGHT, SWAP, found, shop_source, variant_of

DROPPED = CheckFinding(
    "it changes nothing.", "7", "Leave it out", "gold-no-effect", "note", "test", (Fix("drop", index=2),)
)


def test_an_environments_finding_and_a_tasks_are_of_one_kind() -> None:
    wrong = CheckReport("", (Problem("it is closed", "task a", "Open it"),))
    outcome = run_check(Check("doors", "All are open.", lambda context: wrong), CheckContext(find("retail-generated")))
    (closed,) = outcome.problems
    assert closed == CheckFinding("it is closed", "task a", "Open it", rule="doors", level="error")
    (spoilt, *_) = found(shop_source(variant_of(RIGHT, actions=(SWAP, Action("no_such_tool", {})))))
    assert (type(spoilt), spoilt.rule, spoilt.where, spoilt.split) == (
        CheckFinding,
        "gold-unknown-tool",
        "right",
        "test",
    )


def test_json_has_the_place_of_a_tasks_finding_only() -> None:
    assert list(DROPPED.to_json()) == ["rule", "level", "task", "split", "evidence", "remedy", "fixes"]
    assert list(CheckFinding("all earn it", rule="idle-earns").to_json()) == ["rule", "level", "evidence", "remedy"]


def test_terminal_and_page_say_the_same() -> None:
    said = [
        "  - task 7: it changes nothing.",
        "    Leave it out.",
        "    Fixed: leave out actions[2] (a guess: confirm it).",
    ]
    assert list(lines_of(DROPPED, "task 7")) == said
    page = str(html_of(DROPPED))
    assert all(line.strip().removeprefix("- task 7: ") in page for line in said)


def test_dots_within_a_sentence_stay() -> None:
    assert list(lines_of(Problem("the expert writes after '...'"), "")) == ["  - the expert writes after '...'."]


async def test_actions_are_made_in_a_world_of_their_own() -> None:
    domain = shop_source(RIGHT).domain
    fresh = domain.world(RIGHT).digest()
    digest, lost = await gold_ending(domain, RIGHT)
    assert digest != fresh and lost == ""
    async with replayed(domain, RIGHT, [SWAP, SWAP]) as twice:
        assert twice.failed and twice.world.digest() == digest
        assert [m.role for m in twice.messages] == ["assistant", "tool"] * 2
    async with replayed(
        domain, variant_of(RIGHT, communicate_info=("22",), reward_basis=("DB", "COMMUNICATE")), [SWAP]
    ) as done:
        assert (await done.score()).reward == 1 and (await done.score("")).reward == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("muarl.environments.checks.every", "muarl_tools.checks.environment.rules"),
        ("muarl.environments.task_checks.findings", "muarl.domains.checking"),
        ("muarl.environments.task_checks.page", "muarl_tools.checks.tasks.page"),
        ("muarl.users.proxy.reading", "muarl_tools.checks.user.proxy.requests"),
    ],
)
def test_old_names_of_modules_lead_here(old: str, new: str) -> None:
    assert name_of_today(old) == new
