"""Lines that ``muarl replay`` and ``muarl score`` read: recorded calls, and upstream's result files."""

from __future__ import annotations

import json

import pytest

from muarl.basics.errors import DataError
from muarl_worlds.bfcl import official as bfcl
from muarl_worlds.bfcl.official import results
from muarl_worlds.bfcl.official.results import read_results, replay_row, result_calls, score_row
from muarl_worlds.bfcl.official.tasks import task_from_json

FILES = {"docs": {"type": "directory", "contents": {}}, "a.txt": {"type": "file", "content": "one"}}
ENTRY = {
    "id": "multi_turn_base_0",
    "question": [[{"role": "user", "content": "Go."}], [{"role": "user", "content": "List."}]],
    "initial_config": {"GorillaFileSystem": {"root": {"home": {"type": "directory", "contents": FILES}}}},
    "involved_classes": ["GorillaFileSystem"],
}
TRUTH = [["cd('docs')"], ["ls()"]]


@pytest.fixture
def one_entry(monkeypatch, tmp_path):
    """An entry of our own in place of the installed ones."""

    def find(revision, task_id):
        if task_id != ENTRY["id"]:
            raise DataError(f"task_id {task_id!r}: bfcl {revision} has no such entry")
        return task_from_json(ENTRY, TRUTH, revision)

    monkeypatch.setattr(results, "task", find)
    monkeypatch.setattr(results, "_domain", lambda revision, installed: bfcl.checker.Bfcl(revision))
    monkeypatch.setattr(results.data, "path", lambda name: tmp_path)


@pytest.mark.usefixtures("one_entry")
def test_replayed_calls_get_their_results_and_the_state():
    calls = [
        {"class": "GorillaFileSystem", "name": "touch", "kwargs": {"file_name": "ls (x)"}, "note": 1},
        {"class": "GorillaFileSystem", "name": "ls", "kwargs": {"b": 1}},
        {"class": "MathAPI", "name": "add", "kwargs": {"a": 1, "b": 2}},
        {"class": "GorillaFileSystem", "name": "_load", "kwargs": {}},
    ]
    row = {"id": ENTRY["id"], "long_context": False, "calls": calls}
    done = replay_row(row, "f, line 1", "v4")
    assert [call["content"] for call in done["calls"]] == [
        "None",
        "Error during execution: GorillaFileSystem.ls() got an unexpected keyword argument 'b'",
        '{"result": 3}',
        "Error during execution: 'GorillaFileSystem' object has no attribute '_load'",
    ]
    assert done["calls"][0]["note"] == 1 and "content" not in calls[0]
    assert "ls (x)" in done["final_state"]["GorillaFileSystem"]["root"]["contents"]
    assert done["final_state"]["MathAPI"] == {}
    assert json.loads(json.dumps(done)) == done


@pytest.mark.usefixtures("one_entry")
@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({}, "f, line 1: it lacks the field id"),
        ({"id": 5}, "id must be a string, not int"),
        ({"id": "x"}, "f, line 1: task_id 'x': bfcl v4 has no such entry"),
        ({"id": "multi_turn_base_0"}, "it lacks the field calls"),
        ({"id": "multi_turn_base_0", "calls": {}}, "calls must be a list"),
        ({"id": "multi_turn_base_0", "long_context": 1, "calls": []}, "long_context: must be true or false"),
        ({"id": "multi_turn_base_0", "calls": [{}]}, r"calls\[0\]: it lacks the field class"),
        ({"id": "multi_turn_base_0", "calls": [{"class": "X"}]}, r"calls\[0\].class: 'X' is not one of Gorilla"),
        ({"id": "multi_turn_base_0", "calls": [{"class": "MathAPI", "name": "add", "kwargs": []}]}, "kwargs must be"),
    ],
)
def test_malformed_lines_to_replay(row, problem):
    with pytest.raises(DataError, match=problem):
        replay_row(row, "f, line 1", "v4")


@pytest.mark.usefixtures("one_entry")
def test_scored_calls():
    row = {"id": ENTRY["id"], "calls": [[["cd(folder='docs')"]], [["ls()"]]]}
    assert score_row(row, "f", "v4") == {
        "id": ENTRY["id"], "valid": True, "error_type": None, "strict": True, "strict_error_type": None
    }  # fmt: skip
    assert score_row({**row, "calls": row["calls"][:1]}, "f", "v3")["error_type"] == "multi_turn:force_terminated"
    for failed in (None, "Error during inference: no server"):
        assert score_row({**row, "calls": failed}, "f", "v3")["error_type"] == "multi_turn:inference_error"
    for calls, problem in (([5], r"calls\[0\]: must be a list"), ([["ls()"]], r"calls\[0\]\[0\]: must be a list"),
                           ([[[5]]], r"calls\[0\]\[0\]\[0\]: must be a string")):  # fmt: skip
        with pytest.raises(DataError, match=problem):
            score_row({**row, "calls": calls}, "f, line 1", "v4")


@pytest.mark.usefixtures("one_entry")
@pytest.mark.parametrize(
    ("reading", "result"),
    [
        ("native", [[[{"cd": '{"folder": "docs"}'}], "Done."], [[{"ls": "{}"}], "[pwd()]"]]),
        ("prompt", [["[cd(folder='docs')]", "Done."], ["```\n[ls()]\n```"]]),
        (
            "qwen",
            [
                ['<tool_call>\n{"name": "cd", "arguments": {"folder": "docs"}}\n</tool_call>', "Done."],
                ['<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>', "[pwd()]"],
            ],
        ),
    ],
)
def test_result_files(reading, result, tmp_path):
    assert result_calls(result, "v4") == result_calls(result, "v4", reading)
    folder = tmp_path / "model" / "multi_turn"
    folder.mkdir(parents=True)
    rows = [{"id": ENTRY["id"], "result": result}, {"id": ENTRY["id"], "result": "Error during inference"}]
    file = folder / "BFCL_v4_multi_turn_base_result.json"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    found = [score_row(row.value, row.place, "v4") for row in read_results(tmp_path)]
    assert [row["valid"] for row in found] == [True, False]
    assert found[1]["error_type"] == "multi_turn:inference_error"
    assert next(read_results(file)).place == f"{file}, line 1"


def test_malformed_result_files(tmp_path):
    with pytest.raises(DataError, match="no result file"):
        list(read_results(tmp_path))
    file = tmp_path / "r.json"
    for text, problem in (("{", "line 1: not JSON"), ("[1]", "line 1: must be an object")):
        file.write_text(text)
        with pytest.raises(DataError, match=problem):
            list(read_results(file))
    with pytest.raises(DataError, match=r"result\[0\]: must be a list"):
        result_calls(["[ls()]"], "v4")
    with pytest.raises(DataError, match="there is no reading 'xml'"):
        result_calls([[]], "v4", "xml")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"involved_classes": None}, "malformed"),
        ({"involved_classes": ["Nothing"]}, "there is no API class 'Nothing'"),
        ({"question": [["text"]]}, "malformed"),
        ({"question": [[{"role": "user", "content": 5}]]}, "messages with a text"),
        ({"missed_function": {"x": ["ls"]}}, "malformed"),
    ],
)
def test_malformed_entries_are_named(change, problem):
    with pytest.raises(DataError, match=problem) as caught:
        task_from_json({**ENTRY, **change}, TRUTH, "v4")
    assert "bfcl v4 entry 'multi_turn_base_0'" in str(caught.value)
    with pytest.raises(DataError, match="lacks the field 'question'"):
        task_from_json({"id": "multi_turn_base_0", "involved_classes": []}, TRUTH, "v4")
