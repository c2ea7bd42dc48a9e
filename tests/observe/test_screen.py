"""Texts of others on the terminal: nothing in them steers it, whatever they stand in."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

import muarl as muarl_package
from muarl.backends.plans import plan_of
from muarl.basics.untrusted import visible
from muarl.cli.chat_screen import introduce
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.parts import PlannedRun
from muarl.domains.mcp.client import ServerTool
from muarl.observe.screen import Screen
from muarl.observe.terminal import make_logs_visible
from muarl.planning.assumptions import Assumptions
from muarl.report.plan_tables import print_plan
from support.viewing import writing_tasks

HOSTILE = "\x1b[2J\x1b]0;pwned\x07\x9b2J\u202e\ud800\r"
SHOWN = "\\u001b[2J\\u001b]0;pwned\\u0007\\u009b2J\\u202e\\ud800\\u000d"


def test_characters_that_steer_are_shown_as_their_code_points() -> None:
    assert visible(f"a\tb\n{HOSTILE}é") == f"a\tb\n{SHOWN}é"
    assert json.loads(f'"{visible(HOSTILE)}"') == HOSTILE


@pytest.mark.parametrize("terminal", [False, True])
def test_only_rich_writes_control_characters(terminal: bool) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    screen = Screen(file=out, width=120, force_terminal=terminal, color_system="standard" if terminal else None)
    table = Table("name", title=Text(HOSTILE))
    table.add_row(Text(HOSTILE, style="red"))
    table.add_row(Text(visible(HOSTILE.replace("\r", "")), style="red"))
    for shown in (table, Panel(Text(HOSTILE)), Text(HOSTILE)):
        screen.print(shown)
    out.flush()
    text = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert text.count(SHOWN.replace("\\u0007", "").replace("\\u000d", "")) >= 3, "rich itself drops the bell"
    assert text.count(SHOWN.removesuffix("\\u000d")) == 1
    assert not {"\x07", "\x9b", "\u202e", "\r"} & set(text)
    assert ("\x1b[31m" in text) == terminal and "\x1b[2J" not in text and "\x1b]0" not in text
    rows = [line for line in text.splitlines() if "│" in line and not terminal]
    assert len({len(line) for line in rows}) <= 2, "the cells have the width of what is shown"


def muarl(*arguments: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "300"})
    assert done.exit_code == code, (done.output, done.exception)
    assert not {"\x1b", "\x9b", "\u202e", "\r"} & set(done.output), done.output
    return done.stdout or done.stderr


def test_compare_shows_rows_of_others(tmp_path: Path) -> None:
    for name, reward in (("a", 1.0), ("b", 0.0)):
        rows = [
            {"task_id": f"{name}{n}{HOSTILE}" if n else "0", "user": HOSTILE, "domain": HOSTILE, "reward": reward}
            for n in range(4)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert "\\u001b" in muarl("compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    json.loads(muarl("compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--json"))


def test_audit_shows_conversations_of_others(tmp_path: Path) -> None:
    call = {"id": "1", "function": {"name": "cancel_pending_order", "arguments": json.dumps({"order_id": HOSTILE})}}
    talk = [
        {"role": "user", "content": [{"type": HOSTILE}, {"type": "text", "text": f"Hi {HOSTILE}"}]},
        {"role": "assistant", "content": HOSTILE, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": json.dumps({"order_id": HOSTILE, "status": "cancelled"})},
        {"role": "assistant", "content": [{"type": f"{HOSTILE}tool"}]},
    ]
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"id": HOSTILE, "messages": talk}) + "\n")
    said = muarl("audit", log, "--domain", "retail", "--out", tmp_path / "out")
    assert f"1 parts of type {SHOWN}" in said and "catastrophic" in said


def test_errors_show_names_of_others(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"messages": [{"role": HOSTILE, "content": "x"}]}) + "\n")
    done = CliRunner().invoke(app, ["audit", str(log), "--domain", f"retail{HOSTILE[:3]}"])
    assert done.exit_code == 2 and "\x1b" not in done.output


def test_no_text_reaches_the_terminal_by_another_way() -> None:
    """``echo`` and ``Screen`` are the two ways; whoever writes by itself has said here why it may."""
    own = {
        "muarl/observe/terminal.py",  # they are made of it
        "muarl/cli/main.py",  # muarl's own help, with its colours
        "muarl_tools/commands/domains.py",  # a policy to the letter, into a file
        "muarl/accounts/evaluation_report.py",  # makes a text, in which all is visible
    }
    source = Path(muarl_package.__file__).parents[1]
    found: dict[str, list[str]] = {}
    for path in sorted(path for package in source.glob("muarl*") for path in package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"\b(echo|secho|print|Console)\(", text):
            continue
        for node in ast.walk(ast.parse(text)):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called in ("typer.echo", "typer.secho", "click.echo", "click.secho", "print", "Console"):
                found.setdefault(path.relative_to(source).as_posix(), []).append(called)
    assert set(found) <= own, found
    assert found["muarl/cli/main.py"] == found["muarl_tools/commands/domains.py"] == ["typer.echo"], found


def test_tools_of_a_server_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = ServerTool(f"look{HOSTILE}", f"Looks. {HOSTILE}", {"properties": {HOSTILE: {}}}, True)
    monkeypatch.setattr("muarl_tools.commands.mcp._tools_of", lambda *_: {"look": tool})
    assert muarl("mcp", "tools", "server").count("\\u001b[2J") == 3
    assert json.loads(muarl("mcp", "tools", "--json", "server"))[0]["name"] == tool.name


def test_names_of_runs_and_models_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "bad\x1b[2J"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": f"llama{HOSTILE}", "architectures": [HOSTILE]}))
    assert "\\u001b[2J" in muarl("doctor", folder.name, "--no-speed", code=2)
    monkeypatch.setattr("muarl.backends.pretrained.home", lambda: tmp_path)
    assert "\\u001b[2J" in muarl("model", "list")


def test_a_plan_shows_the_name_of_a_model_as_it_is() -> None:
    plan, fitting = plan_of(PlannedRun.of(load_config("mua-8b", starts=False)), Assumptions(), lambda: None)
    out = io.StringIO()
    named = replace(plan, shape=replace(plan.shape, name="[bold]m[/nothing] \x1b[2J"))
    print_plan(named, fitting, Screen(file=out, width=200, soft_wrap=True), explain=False)
    assert out.getvalue().startswith("[bold]m[/nothing] \\u001b[2J")


def test_logs_and_warnings_quote_others_visibly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.lastResort, "formatter", None)
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    make_logs_visible()
    alone = logging.Logger("alone")  # nobody listens, as in a command
    alone.warning("the server said: %s", HOSTILE)
    sys.stderr.write(warnings.formatwarning(f"odd {HOSTILE}", UserWarning, "file.py", 3))
    told = capsys.readouterr().err
    assert told.count(SHOWN) == 2 and "\x1b" not in told and told.endswith("\n")


def test_chat_shows_a_task_and_an_agent_of_others() -> None:
    out = io.StringIO()
    screen = Screen(file=out, width=200)
    task = replace(writing_tasks("test", 1)[0], scenario=HOSTILE)
    introduce(screen, task, f"[bold]{HOSTILE}[/nothing]", "[red]user", person=False, parameters=None)
    told = out.getvalue()
    assert "agent: [bold]\\u001b[2J" in told and "[red]user" in told and "\x1b" not in told
