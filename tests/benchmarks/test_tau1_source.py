"""TAU1's own files: task lists in Python, trajectories of its runs, and the installation of both forms of its data."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import threading

import pytest

from muarl.basics.errors import DataError
from muarl.records import reading as records
from muarl.records.rows import AS_WRITTEN
from muarl.types.episode import StopReason
from muarl_worlds import data, install
from muarl_worlds.tau import tau1_source

PYTHON = """from tau_bench.types import Task, Action

TASKS_DEV = [
    Task(
        annotator="0",
        user_id="ann_1",
        instruction="You are \\"Ann\\". "
        "Be calm — please.",
        actions=[Action(name="book", kwargs={"n": -1, "x": 1.5, "on": True, "no": None, "of": [{"a": []}]})],
        outputs=["10"],
    ),
    Task(user_id="bo_2", instruction="", actions=[], outputs=[]),
]
"""
TASKS = [
    {
        "user_id": "ann_1",
        "instruction": 'You are "Ann". Be calm — please.',
        "actions": [{"name": "book", "kwargs": {"n": -1, "x": 1.5, "on": True, "no": None, "of": [{"a": []}]}}],
        "outputs": ["10"],
    },
    {"user_id": "bo_2", "instruction": "", "actions": [], "outputs": []},
]


def test_tasks_are_read_from_python_and_from_json():
    assert tau1_source.read_tasks(PYTHON, "t.py") == TASKS
    text = tau1_source.tasks_json(PYTHON, "t.py")
    assert tau1_source.read_tasks(text, "t.json") == TASKS and "—" in text and text.startswith('[\n {\n  "user_id"')


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("TASKS = [Task(", r"t\.py is not Python: .* \(line 1\)"),
        ("x = 1\n", r"must assign one list of tasks to a name, not 0"),
        ("A = []\nB = []\n", r"not 2"),
        ("A = [\n  print('hello')]", r"t\.py, line 2: only Task"),
        ("A = [__import__('os').remove('x')]", "only Task"),
        ("A = [Task(user_id=open('x'))]", "only Task"),
        ("A = [Task('x')]", "only Task"),
        ("A = [f'{1}']", "only Task"),
        ("A = [-'x']", "only Task"),
        ("A = [{1: 2}]", "keys of an object must be strings"),
        ("A = [{**x}]", "keys of an object must be strings"),
        ("A = [Task(**x)]", "Task has no field None"),
        ("A = [Task(user='x')]", "Task has no field 'user'"),
        ("A = [Action(name='x')]", "this Action lacks the field 'kwargs'"),
        ("[1,", "is not JSON"),
        ('{"a": 1}', "must be a list of tasks"),
        ("A = [" + "-" * 100_000 + "1]", "cannot be read as Python|is not Python"),
        ("A = [\0]", "cannot be read as Python|is not Python"),
    ],
)
def test_other_python_is_refused_and_not_run(text, part):
    with pytest.raises(DataError, match=part):
        tau1_source.read_tasks(text, "t.py")


def said(role, content):
    return {"role": role, "content": content}


def asked(name, arguments, identity="c1", content=None, more=()):
    calls = [
        {"id": identity, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}},
        *more,
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls, "function_call": None}


def told(content, identity="c1"):
    return {"role": "tool", "tool_call_id": identity, "name": "x", "content": content}


def read(tmp_path, *rows, text=None):
    file = tmp_path / "runs.json"
    file.write_text(json.dumps(list(rows)) if text is None else text, encoding="utf-8")
    return [one.check() for one in records.read(file)]


def test_a_run_of_an_agent_that_calls_tools(tmp_path):
    traj = [
        said("system", "# Airline Agent Policy"),
        said("user", "hi"),
        asked("cancel_reservation", {"reservation_id": "X"}, content="One moment."),
        told("Error: reservation not found"),
        said("assistant", "All done."),
        said("user", "Thanks. ###STOP###"),
        said("assistant", "never said"),
    ]
    task = {"user_id": "ann_1", "actions": []}
    row = {"task_id": 3, "reward": 1.0, "info": {"task": task}, "traj": traj, "trial": 2}
    (found,) = read(tmp_path, row)
    assert (found.index, found.trial, found.reward, found.domain, found.task_row) == (3, 2, 1.0, "airline", task)
    assert (found.stop, found.error, len(found.messages)) == (StopReason.USER_STOP, None, 6)
    call, answer = found.messages[2:4]
    assert (call.content, call.reasoning, call.tool_calls[0].name) == (None, "One moment.", "cancel_reservation")
    assert (answer.role, answer.tool_call_id, answer.error) == ("tool", "c1", True)
    lines = read(tmp_path, text="\n".join(json.dumps(row) for _ in range(2)))
    assert [f.messages for f in lines] == [found.messages] * 2


def test_only_the_first_of_several_calls_was_run_and_respond_is_speaking(tmp_path):
    second = {"id": "c2", "function": {"name": "think", "arguments": "{}"}}
    traj = [
        said("user", "###STOP### at once"),
        asked("think", {"thought": "x"}, more=[second]),
        told(""),
        asked("respond", {"content": "Hello."}),
        said("user", "bye"),
        asked("transfer_to_human_agents", {}),
        told("Error: something"),
        said("user", "###STOP###"),
    ]
    (found,) = read(tmp_path, {"task_id": 0, "traj": traj})
    assert [len(m.tool_calls) for m in found.messages] == [0, 1, 0, 0, 0, 1, 0]
    assert found.messages[3].content == "Hello." and found.stop is StopReason.TRANSFER
    assert (found.reward, found.trial, found.domain, found.task_row) == (None, 0, None, None)


@pytest.mark.parametrize("thought", ["", "Thought:\nFirst look.\n"])
def test_a_run_of_an_agent_that_writes_its_actions(tmp_path, thought):
    look = json.dumps({"name": "get_order_details", "arguments": {"order_id": "#1"}})
    speak = json.dumps({"name": "respond", "arguments": {"content": "It is 10."}})
    traj = [
        said("system", "# Retail agent policy\n#Available tools\n[]"),
        said("user", "hi"),
        said("assistant", f"{thought}Action:\n{look}"),
        said("user", "API output: Error: order not found"),
        said("assistant", f"{thought}Action:\n{speak}"),
        said("user", "API output: is what I wanted"),
        said("assistant", "Action: no JSON"),
        said("user", "###STOP###"),
    ]
    (found,) = read(tmp_path, {"task_id": 0, "reward": 0, "traj": traj})
    roles = [m.role for m in found.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "user"]
    call, answer, spoken, heard = found.messages[2:6]
    assert call.tool_calls[0].arguments == {"order_id": "#1"} and call.tool_calls[0].id == answer.tool_call_id
    assert (answer.content, answer.error) == ("Error: order not found", True)
    assert (spoken.content, spoken.reasoning) == ("It is 10.", thought.strip() or None)
    assert heard.content == "API output: is what I wanted" and found.messages[6].content == "no JSON"
    assert found.domain == "retail" and found.stop is StopReason.USER_STOP


def test_runs_without_an_end(tmp_path):
    cut, broken = read(
        tmp_path,
        {"task_id": 0, "traj": [said("user", "hi"), said("assistant", "ho"), said("user", "hm")]},
        {"task_id": 1, "traj": [], "reward": 0.0, "info": {"error": "boom"}},
    )
    assert cut.stop is StopReason.MAX_TURNS
    assert (broken.termination, broken.error, broken.messages) == ("unexpected_error", "boom", ())
    assert broken.stop is StopReason.USER_STOP


@pytest.mark.parametrize(
    ("row", "part"),
    [
        (3, "entry 0: must be an object with messages"),
        ({"task_id": 0, "traj": {}}, "entry 0: must be an object with a list traj"),
        ({"task_id": "x", "traj": []}, "task_id must be a task's number, not 'x'"),
        ({"task_id": True, "traj": []}, "task_id must be"),
        ({"task_id": 0, "traj": [], "reward": "1"}, "reward a number"),
        ({"task_id": 0, "traj": ["x"]}, r"entry 0, traj\[0\]: must be an object with the role"),
        ({"task_id": 0, "traj": [{"role": "agent"}]}, r"traj\[0\]: must be an object with the role"),
        ({"task_id": 0, "traj": [said("user", 3)]}, "content must be a string or null"),
        ({"task_id": 0, "traj": [{"role": "assistant", "tool_calls": [3]}]}, "a tool call is malformed"),
        ({"task_id": 0, "traj": [asked("x", [1])]}, "a tool call is malformed"),
        (
            {
                "task_id": 0,
                "traj": [{"role": "assistant", "tool_calls": [{"function": {"name": "x", "arguments": "{"}}]}],
            },
            "a tool call is malformed",
        ),
    ],
)
def test_a_malformed_entry_is_named(tmp_path, row, part):
    with pytest.raises(DataError, match=part):
        read(tmp_path, row)


def test_a_file_that_is_none_is_named(tmp_path):
    with pytest.raises(DataError, match="nor one JSON value"):
        read(tmp_path, text="[{")
    with pytest.raises(DataError, match="no such file"):
        list(records.read(tmp_path / "none"))
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(DataError, match="not UTF-8"):
        list(records.read(tmp_path / "binary", lines=AS_WRITTEN))


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A benchmark whose one task list is Python in the repository, in its checkout, and an empty data home."""
    made = tau1_source.tasks_json(PYTHON, "t")

    def entry(text):
        return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "bytes": len(text.encode())}

    files = {
        "LICENSE": entry("MIT"),
        "shop/wiki.md": entry("Be kind."),
        "shop/tasks_dev.json": {**entry(made), "source": {"file": "shop/tasks_dev.py", **entry(PYTHON)}},
    }
    row = {"name": "tiny", "repository": "o/r", "commit": "c" * 40, "folder": "envs", "files": files}
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "tiny.json").write_text(json.dumps(row))
    checkout = tmp_path / "site" / "o/r" / ("c" * 40)
    (checkout / "envs/shop").mkdir(parents=True)
    (checkout / "LICENSE").write_text("MIT")
    (checkout / "envs/shop/wiki.md").write_text("Be kind.")
    (checkout / "envs/shop/tasks_dev.py").write_text(PYTHON, encoding="utf-8")
    monkeypatch.setattr(data, "_MANIFESTS", tmp_path / "manifests")
    monkeypatch.setenv("MUARL_DATA", str(tmp_path / "home"))
    data.manifest.cache_clear()
    yield checkout
    data.manifest.cache_clear()


def left(tmp_path):
    home = tmp_path / "home"
    return sorted(p.name for p in home.iterdir()) if home.exists() else []


def test_a_checkout_is_installed_as_json_and_so_is_the_json_form(tiny, tmp_path):
    folder = install.add("tiny", tiny)
    assert data.read_json("tiny", "shop/tasks_dev.json") == TASKS and data.read_text("tiny", "LICENSE") == "MIT"
    assert not (folder / "shop/tasks_dev.py").exists()
    copy = tmp_path / "copy"
    folder.rename(copy)
    install.add("tiny", copy)
    assert data.read_json("tiny", "shop/tasks_dev.json") == TASKS and left(tmp_path) == ["tiny"]
    (tiny / "LICENSE").write_text("another")  # what stands above the data folder need not be the benchmark's
    install.add("tiny", tiny)
    assert not (data.path("tiny") / "LICENSE").exists()


def test_another_version_of_a_task_list_is_refused_before_it_is_read(tiny, tmp_path):
    (tiny / "envs/shop/tasks_dev.py").write_text(PYTHON + "import os\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"tasks_dev\.py is not the pinned version .*check out o/r at commit"):
        install.add("tiny", tiny)
    (tiny / "envs/shop/tasks_dev.py").unlink()
    with pytest.raises(DataError, match=r"tasks_dev\.json is missing"):
        install.add("tiny", tiny)
    assert left(tmp_path) == []


def test_a_download_is_converted_or_leaves_nothing(tiny, tmp_path, monkeypatch):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(tmp_path / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(data, "RAW", f"http://127.0.0.1:{server.server_port}")
        install.fetch("tiny")
        assert data.read_json("tiny", "shop/tasks_dev.json") == TASKS and left(tmp_path) == ["tiny"]
        (tmp_path / "home" / "tiny").rename(tmp_path / "gone")
        (tiny / "envs/shop/tasks_dev.py").write_text("TASKS = []", encoding="utf-8")
        with pytest.raises(DataError, match=r"tasks_dev\.py is not the pinned version .*try again later"):
            install.fetch("tiny")
        assert left(tmp_path) == []
        server.shutdown()


def test_the_manifest_pins_both_forms_of_every_task_list():
    wanted = data.manifest("tau1")
    lists = [f for f in wanted.files if "tasks_" in f]
    assert sorted(wanted.sources) == sorted(lists) and len(lists) == 4 and len(wanted.commit) == 40
    assert wanted.url("retail/tasks_dev.json").endswith(f"{wanted.commit}/tau_bench/envs/retail/tasks_dev.py")
    assert wanted.url("retail/wiki.md").endswith("/tau_bench/envs/retail/wiki.md")
