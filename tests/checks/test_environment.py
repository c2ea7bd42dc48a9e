"""What `muarl domains check` says of an environment that is broken in one place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.domains.checking import Check, CheckReport, NotChecked, Problem
from muarl.environments.environment import Environment
from muarl.environments.registry import load_environment, load_reference
from muarl_tools.checks.environment.declarations import prompt
from muarl_tools.checks.environment.other_process import TaskRequest, fingerprints, fingerprints_elsewhere
from muarl_tools.checks.environment.rules import CHECKS, CheckOutcome, run_check, run_checks
from muarl_tools.checks.environment.samples import CheckContext, PromptModel
from muarl_tools.commands.domains import _print_result, _prompt_model
from support.parking import write_parking
from support.zoo import write_zoo

SEEDED = 'rng = random.Random(f"zoo {split} {index} {seed}")'
COUNT = 60
Elsewhere = Callable[[Sequence[TaskRequest]], list[list[str]]]


def made_here(wanted: Sequence[TaskRequest]) -> list[list[str]]:
    """What another process would answer, without starting one."""
    return [fingerprints(one) for one in wanted]


def results(
    folder: Path, *changes: tuple[str, str], only: str = "", elsewhere: Elsewhere = made_here
) -> dict[str, CheckOutcome]:
    """What the checks find in the zoo after these changes; ``only`` one of them, or all."""
    reference = write_zoo(folder, *changes)
    context = CheckContext(load_reference(reference), reference, count=COUNT, elsewhere=elsewhere)
    if only:
        return {only: run_check(next(check for check in CHECKS if check.name == only), context)}
    return {result.check.name: result for result in run_checks(context)}


def test_nothing_is_wrong_with_the_zoo_as_it_stands(tmp_path: Path) -> None:
    found = results(tmp_path, elsewhere=fingerprints_elsewhere)
    assert {name: result.problems for name, result in found.items() if result.problems} == {}
    assert {name for name, result in found.items() if result.skipped} == {"vocabulary", "red-team"}
    assert found["red-team"].skipped == "it has no red-team tasks"
    assert found["expert"].measured == "100.0% of 60 tasks"


FAULTS = {
    "policy": (
        [('policy = "You', 'policy = ""; about = "You')],
        "Office (zoo.py, line 13): the agent is told no policy. Set policy on the Domain",
    ),
    "tools": (
        [('        """Cancel a ticket.\n\n        ticket: its number, such as \'T-104\'.\n        """\n', "")],
        "tool cancel (zoo.py, line 41): the agent sees only its name. Give it a docstring",
    ),
    "sizes": (
        [('Action("cancel", {', 'Action("cancle", {')],
        "(intent cancle): there is no tool 'cancle'; did you mean 'cancel'?",
    ),
    "audit-rules": (
        [('spoken={"move"', 'spoken={"moove"')],
        "AuditRules.spoken names the tool 'moove', which there is not; did you mean 'move'?",
    ),
    "vocabulary": (
        [("expert=Clerk)", 'expert=Clerk, phrases=lambda: ["ticket", "<|im_end|>"])')],
        "phrases gives '<|im_end|>'",
    ),
    "tasks": (
        [(SEEDED, "rng = random")],
        "the same split, number and seed gave two different tasks (zoo.py, line 63). Draw everything from",
    ),
    "another-process": (
        [("{rng.randrange(10**6):06}", "{(hash(split) + index) % 10**6:06}")],
        "another process makes another task of it (zoo.py, line 63). Do not draw from sets",
    ),
    "splits": (
        [(SEEDED, 'rng = random.Random(f"zoo {index} {seed}")'), ("('train', 'validation', 'test').index(split)", "0")],
        "validation-0-0 (intent cancel): the same scenario on the same data as task zoo-train-0-0 of the split train",
    ),
    "data": ([('"split": split}', '"split": {split}}')], "tags is no plain JSON"),
    "scenarios": (
        [('scenario=f"You have', 'scenario="You have')],
        "its scenario says '{ticket}'. Fill in the template",
    ),
    "gold": (
        [('Action("cancel", {"ticket": ticket})', 'Action("cancel", {"ticket": "T-0"})')],
        "(intent cancel): actions[0], cancel({\"ticket\": \"T-0\"}): raises ValueError: there is no ticket T-0 [tool "
        "cancel (zoo.py, line 41)]; so do 40 more tasks of this kind. Fix the action, or the tool",
    ),
    "reward": (
        [('found["day"] = "cancelled"', 'found["day"] = found["day"]')],
        "(intent cancel): its writes change nothing",
    ),
    "coverage": (
        [("if rng.random() < 0.5:", "if rng.random() < 2:")],
        "tool cancel (zoo.py, line 41): none of 90 tasks needs it",
    ),
    "bad-calls": (
        [('raise ValueError(f"there is no ticket {ticket}")', "pass")],
        "look (zoo.py, line 20): called with {'ticket': ''}, it has a bug (KeyError): Error: ''. Refuse with",
    ),
    "floors": (
        [("used = rng.random() < 0.05", "used = rng.random() < 0.4")],
        "do-nothing earns 40.0% of the reward (most of it, 24 of 24, with used). Make fewer tasks",
    ),
    "patience": (
        [
            ("from muarl.users.scripted import ScriptedUser", "from muarl.users.base import UserTurn"),
            ("-> ScriptedUser:", "-> object:"),
            (
                'return ScriptedUser(task.agenda["lines"])',
                "return Endless()\n\n\nclass Endless:\n    async def reply(self, conversation):\n"
                '        return UserTurn(Message("user", "And now?"))',
            ),
        ],
        "its user goes on for",
    ),
    "expert": (
        [('said, self.call = f"move {ticket} to {self.day}", ToolCall("2", "move",',
          'said, self.call = f"move {ticket} to {self.day}", ToolCall("2", "mvoe",')],
        "the expert (zoo.py, line 94) solves 71.7% of 60 tasks, and must solve 98%",
    ),
    "conduct": (
        [('f"I will {said}. Shall I go ahead?"', 'f"I can {said}. One moment."')],
        "the audit finds write-without-consent in",
    ),
    "user-texts": (
        [('ScriptedUser(task.agenda["lines"])',
          'ScriptedUser((*task.agenda["lines"][:2], "Yes, please. My zip code is 94107."))')],
        "gives an id, a name or a number that it cannot know",
    ),
    "personas": (
        [('ScriptedUser(task.agenda["lines"])',
          'ScriptedUser(("Hm.", "Hm.") if persona == "confused" else task.agenda["lines"])')],
        "as confused, not solved, for DB",
    ),
    "same-again": (
        [('return Message("assistant", "What is the number of the ticket?")',
          'return Message("assistant", f"What is the number of the ticket? {random.random()}")')],
        "expert and user said something else the second time. Draw from a random.Random of the seed",
    ),
    "mistakes": (
        [('if self.hasty:', 'if self.hasty and len(text) > 10**6:'), ('"What is the number of the ticket?"',
          '"What is its number?" if self.hasty else "What is the number of the ticket?"')],
        "the audit notices 0. Give AuditRules what the tools are called: spoken",
    ),
    "asking": (
        [("not used and rng.random() < 0.4", "not used and rng.random() < 0.0")],
        "never asking loses 0 (0%): an agent that is paid by the outcome alone learns not to ask. Let some users",
    ),
    "odd-replies": (
        [("is_affirmative(text)", "len(text) > 1")],
        "the expert writes after 'Never mind, leave it.'. Let it write only after a yes to its last proposal",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_told_with_its_place(name: str, tmp_path: Path) -> None:
    changes, told = FAULTS[name]
    (result,) = results(tmp_path, *changes, only=name, elsewhere=fingerprints_elsewhere).values()
    said = "\n".join(map(str, result.problems))
    assert told in said, said or result


def test_an_expert_that_hears_only_the_first_word_of_a_reply_is_found(tmp_path: Path) -> None:
    change = ("is_affirmative(text)", 'text.startswith(("Yes", "Go ahead", "Okay"))')
    (result,) = results(tmp_path, change, only="odd-replies").values()
    said = "\n".join(map(str, result.problems))
    for reply in ("Yes, how much will that cost me?", "Yes, if it is free.", "Yes, just a part of it."):
        assert f"the expert writes after {reply!r}" in said


def test_every_check_has_a_fault_that_it_finds() -> None:
    needs_more = {"red-team", "documents", "prompt"}  # tests/users/redteam, test_documents.py, and below
    assert set(FAULTS) | needs_more == {check.name for check in CHECKS}
    assert all(check.about.endswith(".") for check in CHECKS)


def test_parts_that_are_missing_are_said_and_do_not_pass(tmp_path: Path) -> None:
    found = results(
        tmp_path, (", rule_based_user=visitor, expert=Clerk)", ")"), ("audit = AuditRules(", "rules = dict(")
    )
    said = {name: result.skipped for name, result in found.items() if result.skipped}
    assert said["expert"] == said["conduct"] == said["odd-replies"] == "it has no expert"
    assert said["patience"] == "it has no rule-based user"
    assert said["audit-rules"].startswith("it declares no audit rules")
    assert found["floors"].measured == "do-nothing 3.3%, always-transfer 3.3% of 60 tasks"
    assert not any(result.problems for result in found.values())


def test_a_task_has_an_intent_that_is_declared(tmp_path: Path) -> None:
    checked = results(tmp_path, ("expert=Clerk)", 'expert=Clerk, intents=lambda size: ["move", "look"])'))
    problem = next(p for p in checked["tasks"].problems if p.where.endswith("(intent cancel)"))
    assert problem.what.startswith("its intent is not among those of Environment.intents: move, look")


def test_tasks_that_cannot_be_made_are_told_once(tmp_path: Path) -> None:
    found = results(tmp_path, (SEEDED, "rng = random.Random(seeds)"))
    told = [str(problem) for result in found.values() for problem in result.problems]
    assert any("zoo.py, line 65" in text and "NameError: name 'seeds' is not defined" in text for text in told)
    assert found["expert"].skipped == "the tasks of the split test could not be made"


def test_what_breaks_off_names_the_code(tmp_path: Path) -> None:
    found = results(tmp_path, ('said, self.call = f"cancel {ticket}"', "said, self.call = self.absent"))
    told = str(found["expert"].problems[1])
    assert "the expert (zoo.py, line 94) breaks off: unexpected AttributeError" in told
    (tmp_path / "user").mkdir()
    user = results(tmp_path / "user", ('ScriptedUser(task.agenda["lines"])', 'ScriptedUser(task.agenda["words"])'))
    told = [str(problem) for result in user.values() for problem in result.problems]
    assert len(told) == 1 and "rule_based_user has a bug: KeyError: 'words'" in told[0]


def test_an_environment_may_add_checks_of_its_own(tmp_path: Path) -> None:
    def look(context: CheckContext) -> CheckReport:
        late = [task for task in context.tasks() if "Sunday" in task.scenario]
        return CheckReport(f"{len(late)} tasks", (Problem("the zoo is closed on Sundays", late[0].id),))

    def cannot(context: CheckContext) -> CheckReport:
        raise NotChecked("nothing to look at")

    zoo = load_reference(write_zoo(tmp_path))
    fields = {name: getattr(zoo, name) for name in ("name", "domain", "tasks")}
    own = Environment(**fields, own_checks=lambda: (Check("days", "It is open.", look), Check("no", "No.", cannot)))
    *_, days, none = run_checks(CheckContext(own, count=20))
    assert str(days.problems[0]).endswith(": the zoo is closed on Sundays") and days.measured.endswith(" tasks")
    assert none.skipped == "nothing to look at"


def test_a_table_of_a_checks_own_is_printed_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (("rule", "declared by", "tasks"), ("10", "renew: refuse", "8"), ("11", "nothing", ""))
    _print_result(CheckOutcome(Check("policy-rules", "", lambda _: CheckReport("")), "2 rules", rows=rows))
    assert capsys.readouterr().out.splitlines() == [
        "policy-rules     ok            2 rules",
        "    rule  declared by    tasks",
        "    10    renew: refuse  8",
        "    11    nothing",
    ]


def test_a_policy_that_leaves_no_room_is_told_for_each_model(tmp_path: Path) -> None:
    zoo = load_reference(write_zoo(tmp_path))
    context = CheckContext(zoo, count=5)
    assert not prompt(context).problems
    context.models = [
        PromptModel(name, window, lambda policy, tools: 900) for name, window in (("a", 4096), ("b", 1024))
    ]
    found = prompt(context)
    assert found.measured == "900 of 4,096 tokens of a; 900 of 1,024 tokens of b"
    (problem,) = found.problems
    assert problem.what == "policy and tools take more than half of what b reads at once (900 of 1,024 tokens)"
    context.models, context.domain._policy_text = (), "rule " * 196_000
    (problem,) = prompt(context).problems
    assert re.match(r"policy and tools take about 24\d,\d\d\d tokens, before the first message", problem.what)


def test_tokens_are_counted_by_a_checkpoints_own_tokenizer() -> None:
    model = _prompt_model("base")
    specs = load_environment("retail-generated").make_domain("tiny").tool_specs()
    assert model.name == "base" and 0 < model.count("Be kind.", ()) < model.count("Be kind.", specs) < model.window


def command(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["domains", "check", *arguments])
    return result.exit_code, result.output


def test_the_command_prints_a_table_and_its_exit_code_says_whether_all_is_well(tmp_path: Path) -> None:
    code, printed = command(write_zoo(tmp_path), "--tasks", "30")
    assert code == 0 and printed.endswith("No problems.\n")
    rows = {line.split("  ")[0]: line for line in printed.splitlines()}
    assert rows["expert"].split("  ", 1)[1].split() == ["ok", "100.0%", "of", "30", "tasks"]
    assert "not checked   it has no red-team tasks" in rows["red-team"]
    (tmp_path / "broken").mkdir()
    changes, _ = FAULTS["gold"]
    code, printed = command(write_zoo(tmp_path / "broken", *changes), "-n", "30")
    assert code == 1 and "Problems: " in printed
    assert "gold             1 problem     " in printed and "    Fix the action, or the tool.\n" in printed


def test_the_command_prints_json_for_programs(tmp_path: Path) -> None:
    changes, _ = FAULTS["gold"]
    page = tmp_path / "rules.html"
    arguments = [write_zoo(tmp_path, *changes), "-n", "30", "--json", "--page", str(page)]
    result = CliRunner().invoke(app, ["domains", "check", *arguments])
    printed = json.loads(result.stdout)
    assert result.exit_code == 1 and page.is_file() and str(page) in result.stderr.replace("\n", "")
    assert (printed["environment"], printed["split"], printed["tasks"], printed["seed"]) == ("zoo", "test", 30, 0)
    checks = {one["check"]: one for one in printed["checks"]}
    assert checks["policy"]["state"] == "ok" and not checks["policy"]["problems"]
    assert checks["red-team"]["state"] == "not checked" and checks["red-team"]["skipped"] == "it has no red-team tasks"
    (problem,) = checks["gold"]["problems"]
    assert problem["where"].endswith("(intent cancel)") and problem["remedy"] == "Fix the action, or the tool"
    assert "there is no ticket T-0" in problem["evidence"]


def test_the_output_on_the_page_is_what_is_printed(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = repository / "docs" / "domains.md"
    file = write_parking(page, tmp_path)
    file.write_text(file.read_text().replace("rng.random() < 0.9", "rng.random() < 0.8"))
    shown = re.search(r"^```text\n(parking, 200.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert shown is not None
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["domains", "check", "./parking.py:PARKING"])
    assert result.exit_code == 1
    at = 0
    for part in shown[1].split("...\n"):  # the page leaves out the checks between
        assert part in result.stdout[at:]
        at = result.stdout.index(part, at) + len(part)
    assert result.stdout.startswith(shown[1].split("...\n")[0]) and at == len(result.stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retial-generated"], "did you mean retail-generated?"),
        (["retail-generated", "--size", "huge"], "--size is huge; the sizes of retail-generated are tiny"),
        (["retail-generated", "--tasks", "0"], "--tasks"),
    ],
)
def test_bad_usage_is_refused(arguments: list[str], said: str) -> None:
    code, printed = command(*arguments)
    assert code == 2 and said in " ".join(printed.split())


def test_a_size_of_an_environment_with_one_is_refused(tmp_path: Path) -> None:
    code, printed = command(write_zoo(tmp_path), "--size", "tiny")
    assert code == 2 and "has only one size; remove --size" in " ".join(printed.split())
