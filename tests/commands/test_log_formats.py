"""A log says the same in whichever format it is: the same findings, and the same tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.records import atif
from muarl.records.chat import ChatConversation
from muarl.records.parquet import row_of, write_parquet
from muarl.records.rows import PlacedRow
from muarl.types.chat import to_openai
from muarl.types.episode import Episode, StopReason, Turn
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
        write_parquet([row_of("eval", episode(c)) for c in found], out)
    return folder / "rows.parquet"


def function_calls(found: list[Case], folder: Path) -> Path:
    """OpenAI's form before tools: a call in its message, and its result under the function's name."""

    def old(message: dict[str, Any]) -> dict[str, Any]:
        if message["role"] == "tool":
            return {"role": "function", "name": message["name"], "content": message["content"]}
        (call,) = message.pop("tool_calls", (None,))
        return message if call is None else message | {"function_call": call["function"]}

    rows = [{"id": c.id, "messages": [old(m) for m in said(c)], "functions": []} for c in found]
    return lines(folder / "old.jsonl", rows)


def blocks(found: list[Case], folder: Path) -> Path:
    """Anthropic's form: calls, and results in the user's messages, as blocks."""

    def row(case: Case) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        for m in said(case):
            text = [{"type": "text", "text": m["content"]}] if m["content"] and m["role"] != "tool" else []
            made = [
                {"type": "tool_use", "id": c["id"], "name": c["function"]["name"],
                 "input": json.loads(c["function"]["arguments"])} for c in m.get("tool_calls", ())
            ]  # fmt: skip
            result = [{"type": "tool_result", "tool_use_id": m["tool_call_id"],
                       "content": [{"type": "text", "text": m["content"]}]}] if m["role"] == "tool" else []  # fmt: skip
            role = "user" if m["role"] == "tool" else m["role"]
            if out and role == out[-1]["role"] == "user":
                out[-1]["content"] += result + text
            else:
                out.append({"role": role, "content": result + text + made})
        return out

    return lines(folder / "blocks.jsonl", [{"id": c.id, "messages": row(c)} for c in found])


FORMATS: list[Write] = [function_calls, blocks, spans, responses, trajectories, parquet]


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


ACTS: dict[str, dict[str, Any]] = {
    "parts of type mcp_tool_use": {"content": [{"type": "mcp_tool_use", "name": "x", "input": {}}]},
    "fields toolCalls": {"content": "", "toolCalls": [{"name": "x", "args": {}}]},
    "fields additional_kwargs.function_call": {"content": "", "additional_kwargs": {"function_call": {"name": "x"}}},
}


@pytest.mark.parametrize("what", ACTS)
def test_calls_of_forms_that_are_not_known_are_not_read_and_in_no_share(what: str, tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "Cancel it"}, {"role": "assistant", **ACTS[what]}, SPOKEN]
    log = lines(tmp_path / "log.jsonl", [{"messages": talk}])
    done = muarl("audit", log, "--domain", "retail", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert f"Not read in full, and so in no layer's share: 1 of 1 conversations (1 {what}" in done.output
    assert "100.0%" not in done.output
    found = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (found["unread"], found["catastrophic"], set(found["layers"].values())) == (1, None, {None})
    assert muarl("audit", log, "--domain", "retail", "--fail-on", "violation").exit_code == 2


def test_results_without_their_calls_and_calls_at_the_provider_are_not_read(tmp_path: Path) -> None:
    result = {"role": "tool", "tool_call_id": "1", "content": '{"status": "cancelled"}'}
    alone = [{"role": "user", "content": "Cancel it"}, result, SPOKEN]
    provider = [{"role": "user", "content": "Cancel it"}, {"type": "mcp_call", "name": "cancel"}]
    log = lines(tmp_path / "log.jsonl", [{"messages": alone}, {"input": provider, "output": items_of([SPOKEN])}])
    said = muarl("audit", log, "--domain", "retail").output
    assert "2 of 2 conversations (1 results of tools without their calls, 1 items of type mcp_call" in said
    assert "100.0%" not in said


@pytest.mark.parametrize("talk", [[], [{"role": "system", "content": "Be kind"}], [{"role": "user", "content": "Hi"}]])
def test_without_a_message_of_the_agent_there_is_nothing_to_audit(talk: list[Any], tmp_path: Path) -> None:
    log = lines(tmp_path / "log.jsonl", [{"messages": talk}])
    said = muarl("audit", log, "--domain", "retail").output
    assert "Nothing to audit in 1 of 1 conversations: no message of the agent." in said
    assert "100.0%" not in said


def test_the_benchmarks_own_results_are_logs_too(tmp_path: Path) -> None:
    traj = said(RETAIL[0])
    ours = lines(tmp_path / "ours.jsonl", [{"messages": traj}])
    theirs = lines(tmp_path / "tau1.jsonl", [{"task_id": 0, "trial": 0, "traj": traj}])
    made = []
    for log in (ours, theirs):
        out = log.with_suffix(".tasks")
        done = muarl("tasks", "from-log", log, "--out", out)
        assert done.exit_code == 0, done.output
        (row,) = map(json.loads, out.read_text().splitlines())
        made.append((row["scenario"], row["actions"]))
    assert made[0] == made[1]


def test_calls_written_both_ways_are_one_call(tmp_path: Path) -> None:
    made = {"id": "a", "function": {"name": "get_user_details", "arguments": '{"user_id": "sara_doe_496"}'}}
    use = {"type": "tool_use", "id": "a", "name": "get_user_details", "input": {"user_id": "sara_doe_496"}}
    both: list[dict[str, Any]] = [
        {"content": [use], "tool_calls": [made]},
        {"content": None, "tool_calls": [made], "function_call": made["function"]},
    ]
    for message in both:
        row = PlacedRow({"messages": [{"role": "assistant", **message}]}, "log", 1, Path("log"))
        assert [(c.id, c.name) for c in ChatConversation(row).messages[0].tool_calls] == [("a", "get_user_details")]


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


def test_a_reward_that_no_number_can_hold_is_refused_by_line(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Hi"}, SPOKEN]
    log = lines(tmp_path / "log.jsonl", [{"id": "a", "messages": said, "reward": 10**400}])
    found = muarl("audit", log)
    assert found.exit_code == 2 and "reward: a whole number of more than 300 digits" in found.output


def test_no_training_tasks_are_made_of_what_a_benchmark_was_measured_by(tmp_path: Path) -> None:
    log = tmp_path / "run" / "episodes" / "eval.jsonl"
    log.parent.mkdir(parents=True)
    (tmp_path / "run" / "status.json").write_text('{"command": "eval"}')
    (tmp_path / "run" / "config.yaml").write_text("domain: {name: tau2-retail}")
    log.write_text("")
    done = muarl("tasks", "from-log", log, "--out", tmp_path / "tasks.jsonl")
    assert done.exit_code == 2 and not (tmp_path / "tasks.jsonl").exists()
    assert f"{log}: holds conversations about a benchmark's own tasks (tau2-retail)" in done.stderr
