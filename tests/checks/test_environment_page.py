"""The page of `muarl domains check`: the policy's rules, what nobody keeps at its top, and all findings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.domains.checking import Check, KeptRule, Problem, RuleKeeper, RuleTable
from muarl_tools.checks.environment import rules as checks
from muarl_tools.checks.environment.page import page_of
from muarl_tools.checks.environment.rules import CheckOutcome, EnvironmentReport

EVIL = "</td><script>alert(1)</script><img src=x onerror=y>"
RULES = RuleTable(
    (
        KeptRule(
            "1", "Renew twice\n- at most", (RuleKeeper("renew: refuse", EVIL, "desk.py:12", 7, "ineligible-write"),)
        ),
        KeptRule("2", f"No jokes {EVIL}"),
        KeptRule("3", "Ask first.", (RuleKeeper("renew: transfer", "", "desk.py:14", 0, "ineligible-write"),)),
        KeptRule("4", "Be kind.", (RuleKeeper("said:", "tone", "", None, None),)),
        KeptRule("5", "Say the day.", (RuleKeeper("due: answer", "", "desk.py:20", 0, ""),)),
        KeptRule("9", "", (RuleKeeper("due: refuse", "no", "desk.py:22", 1, ""),)),
    ),
    40,
)


def outcome(name: str, **more: Any) -> CheckOutcome:
    return CheckOutcome(Check(name, f"About {name}.", lambda context: None), **more)  # type: ignore[arg-type, return-value]


OUTCOMES = (
    outcome("gold", measured=f"12 actions {EVIL}"),
    outcome("data", skipped="it has no data"),
    outcome("words", problems=tuple(Problem(f"wrong {n} {EVIL}", EVIL, "Mend it") for n in range(5))),
    outcome("policy-rules", measured="4 of 5", rows=(("rule",), ("1",)), rules=RULES),
)


def page(*outcomes: CheckOutcome) -> str:
    return page_of(EnvironmentReport(f"desk {EVIL}", "tiny", "test", 40, 3, outcomes))


def test_each_rule_stands_with_its_text_its_line_its_tasks_and_its_audit() -> None:
    html = page(*OUTCOMES)
    text = re.sub("<[^>]+>", "|", html)
    for told in (
        "Renew twice\n- at most",
        "desk.py:12",
        "7 of 40",
        "ineligible-write",
        "the reward only",
        "met by no task",
    ):
        assert told in text, told
    notices = re.findall('<div class="notice.*?</div>', html, re.DOTALL)
    heads = [re.findall("<b>(.)</b>", notice) or re.findall("policy: (.*?)[.]<", notice) for notice in notices]
    assert heads == [["2", "5"], ["9"], ["3"], ["4"]]
    assert "Nothing practises or audits: " in notices[0] and "met by none of 40 tasks" in notices[2]
    assert "5 problems in 1 of 3 checks: words (5)." in text and "wrong 4" in text and "it has no data" in text


def test_no_markup_of_an_authors_gets_through() -> None:
    html = page(*OUTCOMES)
    assert not re.search("<(script|img)", html) and html.count("&lt;script&gt;") >= 9
    assert "default-src &#x27;none&#x27;" in html


def test_who_names_no_rule_is_told_how() -> None:
    html = page(outcome("policy-rules", rules=RuleTable((KeptRule("1", "Be kind."),), 0)))
    assert "No declaration names one of the policy" in html and "Be kind." in html and "No problems in 1 checks" in html
    assert 'id="rules' not in page(outcome("gold", measured="2 actions"))


def check(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["domains", "check", "retail-generated", *arguments])


def test_the_command_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "run_checks", lambda context: iter(OUTCOMES))
    wanted = tmp_path / "new" / "rules.html"
    done = check("--page", str(wanted), "--tasks", "40", "--seed", "3")
    assert done.exit_code == 1 and f"Page: {wanted}" in done.stdout
    assert wanted.read_text() == page_of(EnvironmentReport("retail-generated", "tiny", "test", 40, 3, OUTCOMES))
    assert [file.name for file in wanted.parent.iterdir()] == ["rules.html"]


def test_a_place_where_no_page_can_be_is_told_before_the_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "run_checks", lambda context: pytest.fail("it was checked"))
    (tmp_path / "file").touch()
    for wanted, said in ((tmp_path, "is a folder: give a file"), (tmp_path / "file" / "a.html", "is not a folder")):
        done = check("--page", str(wanted))
        assert done.exit_code == 2 and said in " ".join(done.stderr.split())
