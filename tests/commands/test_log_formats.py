"""A log says the same in whichever format it is: the same findings, and the same tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from muarl.chat import to_openai
from muarl.cli import app
from muarl.episode import Episode, StopReason, Turn
from muarl.formats import atif, rows
from support.audited import Case, cases
from support.logged import export, items_of, spans_of

Write = Callable[[list[Case], Path], Path]
RETAIL = [c for c in cases() if c.domain == "retail" and not any(m.requestor == "user" for m in c.messages)][:12]
SPOKEN = {"role": "assistant", "content": "Hello"}


def muarl(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})


def said(case: Case) -> list[dict[str, Any]]:
    return [to_openai(m) for m in case.messages]


def lines(path: Path, found: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in found))
    return path


def chat(found: list[Case], folder: Path) -> Path:
    return lines(folder / "log.jsonl", [{"id": c.id, "messages": said(c)} for c in found])


def spans(found: list[Case], folder: Path) -> Path:
    made = []
    for number, case in enumerate(found):
        messages = said(case)
        if messages[-1]["role"] != "assistant":  # what follows the last call of a model is in no span of one
            messages.append({"role": "assistant", "content": "Bye."})
        made += [export([s]) for s in spans_of(messages, trace=f"{number:032x}", **{"gen_ai.conversation.id": case.id})]
    return lines(folder / "spans.jsonl", made)


def responses(found: list[Case], folder: Path) -> Path:
    return lines(folder / "responses.jsonl", [{"id": c.id, "input": items_of(said(c))} for c in found])


def episode(case: Case) -> Episode:
    return Episode(case.id, case.id, "retail", [Turn(m) for m in case.messages], StopReason.USER_STOP)


def trajectories(found: list[Case], folder: Path) -> Path:
    """As others write them: without what is ours."""
    place = folder / "trajectories"
    place.mkdir()
    for case in found:
        made = atif.trajectory_of(episode(case))
        for step in (
            made,
            *made["steps"],
            *(r for s in made["steps"] for r in s.get("observation", {}).get("results", [])),
        ):
            step.pop("extra")
        (place / f"{case.id}.json").write_text(json.dumps(made, indent=1))
    return place


def parquet(found: list[Case], folder: Path) -> Path:
    pytest.importorskip("pyarrow")
    with open(folder / "rows.parquet", "wb") as out:
        rows.write_parquet([rows.row_of("eval", episode(c)) for c in found], out)
    return folder / "rows.parquet"


FORMATS: list[Write] = [spans, responses, trajectories, parquet]


def findings(source: Path, out: Path) -> set[tuple[str, str, int]]:
    done = muarl("audit", source, "--domain", "retail", "--out", out)
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in (out / "findings.jsonl").read_text().splitlines()]
    return {(f["episode"], f["rule"], f["message"]) for f in found}


@pytest.mark.parametrize("write", FORMATS)
def test_the_audit_finds_the_same(write: Write, tmp_path: Path) -> None:
    expected = findings(chat(RETAIL, tmp_path), tmp_path / "expected")
    assert len(expected) > 3
    assert findings(write(RETAIL, tmp_path), tmp_path / "found") == expected


@pytest.mark.parametrize("write", FORMATS)
def test_the_same_tasks_are_made_of_it(write: Write, tmp_path: Path) -> None:
    def ids(source: Path, out: Path) -> set[str]:
        done = muarl("tasks", "from-log", source, "--domain", "retail-generated", "--out", out)
        assert done.exit_code == 0, done.output
        found = [json.loads(line) for line in out.read_text().splitlines()]
        return {json.dumps([t["actions"], t["lines"]]) for t in found}

    expected = ids(chat(RETAIL, tmp_path), tmp_path / "expected.jsonl")
    assert expected
    assert ids(write(RETAIL, tmp_path), tmp_path / "found.jsonl") == expected


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    image = {"role": "user", "content": [{"type": "input_image"}, {"type": "input_text", "text": "Where is it?"}]}
    log = lines(tmp_path / "log.jsonl", [{"input": [image], "output": [{"role": "assistant", "content": "Here."}]}])
    done = muarl("audit", log, "--domain", "retail")
    assert done.exit_code == 0, done.output
    assert "Left out, as a conversation has no place for it: 1 parts of type input_image" in done.output


def test_what_is_wrong_is_named_with_file_line_and_field(tmp_path: Path) -> None:
    bad = lines(
        tmp_path / "log.jsonl",
        [{"input": "Hi", "output": items_of([SPOKEN])}, {"input": [{"role": "pope", "content": "x"}]}],
    )
    for words in (("audit", bad), ("tasks", "from-log", bad, "--out", tmp_path / "tasks.jsonl")):
        done = muarl(*words)
        assert done.exit_code == 2
        assert "line 2, input[0].role: must be one of" in " ".join(done.output.split()), done.output
    assert not (tmp_path / "tasks.jsonl").exists()
