"""Texts of others on the terminal: nothing in them steers it, whatever they stand in."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from muarl.cli import app
from muarl.observe.screen import Screen
from muarl.untrusted import visible

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


def muarl(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "300"})
    assert done.exit_code == 0, (done.output, done.exception)
    assert not {"\x1b", "\x9b", "\u202e", "\r"} & set(done.output), done.output
    return done.output


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
