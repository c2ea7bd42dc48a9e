"""Every command takes an environment from a file of somebody's own: the one that docs/domains.md shows, outside the
repository, and one that is installed as a plug-in."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from muarl.basics.errors import MuarlError
from muarl.cli.main import app
from muarl.environments import registry
from support.fake_openai import Answer, FakeOpenAI, call, completion, text
from support.parking import write_parking

PARKING = "./parking.py:PARKING"
SMALL = (
    "rl.tasks_per_step=2", "rl.group_size=2", "rl.eval_every=0", "model.max_context=2048", "rollout.tokens_per_turn=16",
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_approvals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test approves counts for it alone, and so do the plug-ins that it installs."""
    monkeypatch.setattr(registry, "_approved", set())
    monkeypatch.setattr(sys, "path", list(sys.path))
    registry._plugins.cache_clear()
    yield
    registry._plugins.cache_clear()


@pytest.fixture
def stranger(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of somebody who has written parking.py; the current one."""
    folder = tmp_path / "stranger"
    write_parking(repository / "docs" / "domains.md", folder)
    monkeypatch.chdir(folder)
    return folder


def muarl(*arguments: object, code: int = 0, **options: Any) -> str:
    """What a command prints, both streams; it must end with that code."""
    result: Result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "250"}, **options)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def forget() -> None:
    """A new process: nothing was named on its command line yet, and nothing is loaded."""
    registry._approved.clear()
    registry._load.cache_clear()


def office(body: dict[str, Any]) -> Answer:
    """A model as the agent, where it has tools, and as the resident, where it has none."""
    messages = body["messages"]
    last = messages[-1].get("content") or ""
    number = re.search(r"P-\d+", json.dumps(messages) if not body.get("tools") else last)
    if not body.get("tools"):
        wish = re.search(r"You want to say: ([^\n]+)", messages[0]["content"])
        if wish is None or number is None:
            return text("ok")  # asked whether it is there
        said = {"number": f"It is {number[0]}.", "go ahead": "Yes, please.", "help you": wish[1]}
        return text(next((answer for asked, answer in said.items() if asked in last), "###STOP###"))
    heard = " ".join(m["content"] for m in messages if m["role"] == "user")
    plate, months = re.search(r"new car, (\w+ \d+)", heard), re.search(r"by (\d+) months", heard)
    change = {"plate": plate[1]} if plate else {"months": int(months[1])} if months else {}
    permit = re.search(r"P-\d+", heard)
    if messages[-1]["role"] == "tool":
        if any(c["function"]["name"] != "get_permit" for m in messages for c in m.get("tool_calls") or ()):
            return text("It is done. Goodbye.")
        if json.loads(last)["status"] == "expired":
            return text("I am sorry, your permit has expired, so I cannot change it. Goodbye.")
        wording = (
            f"move permit {permit and permit[0]} to {plate[1]}" if plate else f"prolong permit {permit and permit[0]}"
        )
        return text(f"I will {wording} {'' if plate else f'by {months and months[1]} months'}. Shall I go ahead?")
    if "yes" in last.lower() and permit is not None:
        return completion(
            tool_calls=[call("change_car" if plate else "prolong", {"permit_id": permit[0], **change}, "2")]
        )
    if number is None:
        return text("What is the number of your permit?")
    return completion(tool_calls=[call("get_permit", {"permit_id": number[0]})])


def test_tasks_are_shown_and_tried(stranger: Path) -> None:
    said = muarl("generate", PARKING, "--count", 30, "--out", "tasks.jsonl")
    assert "30 test tasks of parking (seed 0)" in said and "reward of do-nothing" in said
    assert len(Path("tasks.jsonl").read_text().splitlines()) == 30
    assert muarl("generate", "--domain", PARKING, "--count", 30, "--out", "again.jsonl")
    assert Path("tasks.jsonl").read_text() == Path("again.jsonl").read_text()
    shown = muarl("domains", "show", PARKING)
    assert "Tools of parking:" in shown and "change_car(permit_id, plate)" in shown
    assert "--size" in muarl("domains", "show", PARKING, "--size", "tiny", code=2)
    assert "there is no P in" in muarl("generate", "./parking.py:P", code=2)


def test_it_is_evaluated_audited_and_viewed(stranger: Path) -> None:
    with FakeOpenAI(office) as server:
        model = f"endpoint:m@{server.url}"
        muarl("eval", PARKING, "--agent", model, "--user", model, "--tasks", 4, "--trials", 1)
    run = Path("runs/eval-parking")
    summary = json.loads((run / "summary.json").read_text())
    assert summary["evaluation"]["episodes"] == 4 and summary["evaluation"]["success"] == 1.0
    whole = f"{stranger / 'parking.py'}:PARKING"
    assert json.loads((run / "status.json").read_text())["domain"] == "parking"
    assert "parking" in muarl("runs")
    forget()
    assert "parking" in muarl("audit", run) and muarl("report", run)
    assert registry.approved() == ()
    muarl("view", run, "--export", "pages")
    assert f"Its environment is not loaded: give --domain {whole}" in pages("pages")
    muarl("view", run, "--export", "more", "--domain", PARKING)
    assert "Its environment is not loaded" not in pages("more") and "replaying the episode’s calls" in pages("more")


def test_a_base_run_has_the_same_name_for_it(stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object) -> None:
        raise MuarlError("far enough")

    monkeypatch.setattr("muarl.recipes.pretraining._check_offers", lambda *_: None)
    monkeypatch.setattr("muarl.recipes.pretraining.conversations", ended)
    assert "far enough" in muarl("base", "--domain", PARKING, code=2)
    (listed,) = json.loads(CliRunner().invoke(app, ["runs", "--json"]).stdout)
    assert (listed["name"], listed["domain"]) == ("base", "parking")


def pages(folder: str) -> str:
    return " ".join(" ".join(page.read_text() for page in Path(folder).rglob("*.html")).split())


@pytest.mark.slow
def test_it_is_trained_on_and_resumed_from_elsewhere(
    stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = muarl("train", "--domain", PARKING, "--name", "parking", "rl.steps=1", *SMALL)
    assert "the checkpoint base was not made on parking" in said
    assert f"muarl view runs/parking --domain {stranger / 'parking.py'}:PARKING" in said
    run = stranger / "runs" / "parking"
    forget()
    monkeypatch.chdir(tmp_path)
    muarl("train", "--resume", run, "rl.steps=2")
    (stranger / "parking.py").rename(tmp_path / "parking.py")
    forget()
    assert "--domain FILE.py:PARKING" in muarl("train", "--resume", run, "rl.steps=3", code=2)
    assert "there is no file" in muarl(
        "train", "--resume", run, "rl.steps=3", "-d", f"{stranger}/parking.py:PARKING", code=2
    )
    muarl("train", "--resume", run, "rl.steps=3", "--domain", PARKING)
    assert [row["step"] for row in map(json.loads, (run / "metrics.jsonl").read_text().splitlines())][-1] == 2
    forget()
    assert "--domain" in muarl("chat", run, code=2)
    assert "ended by" in muarl("chat", run, "--domain", PARKING, "--user", "agenda")
    forget()
    assert "--domain" in muarl("eval", "--checkpoint", run, code=2)
    assert muarl("eval", "--checkpoint", run, "--domain", PARKING, "--tasks", 2, "--trials", 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("quickstart",), "parking has no scripted expert"),
        (("sft",), "parking has no scripted expert"),
        (("base",), "parking has no scripted expert"),
        (("coldstart",), "parking has no scripted expert"),
        (("eval", "--agent", "expert"), "parking has no scripted expert"),
        (("eval", "--agent", "idle", "--red-team", "all"), "parking has no red-team tasks"),
        (("train", "domain.size=huge", "rl.stepz=1"), "rl.steps"),
        (("eval", "--agent", "idle", "eval.split=hidden"), "parking has no tasks for the split 'hidden'; it has train"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_it_does_not_offer_is_refused_by_name(stranger: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in muarl(*arguments, "--domain", PARKING, code=2)
    assert not list(Path("runs").glob("*/episodes/*")), "before any work"


def test_logs_become_tasks_and_models_make_a_cold_start(stranger: Path) -> None:
    muarl("generate", PARKING, "--count", 1, "--show", 0)
    tables = registry.find(registry.approve(PARKING)).make_tasks("test", 1)[0].database
    assert tables is not None
    permit = next(iter(tables.tables["permits"]))
    Path("before.json").write_text(json.dumps({"permits": dict(tables.tables["permits"])}, default=dict))
    found = json.dumps(dict(tables.tables["permits"][permit]))
    asked = {
        "id": "1",
        "type": "function",
        "function": {"name": "get_permit", "arguments": json.dumps({"permit_id": permit})},
    }
    log = [
        {"role": "user", "content": f"What car is {permit} for?"},
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "1", "content": found},
        {"role": "assistant", "content": "It is for your car."},
    ]
    Path("live.jsonl").write_text(json.dumps({"messages": log}) + "\n")
    said = muarl("tasks", "from-log", "live.jsonl", "-d", PARKING, "--database", "before.json", "--out", "mine.jsonl")
    assert "1 conversations: 1 new tasks" in said
    name = re.search(r"log-\w+", muarl("tasks", "show", "mine.jsonl"))
    assert name is not None
    assert "1 confirmed" in muarl("tasks", "confirm", "mine.jsonl", name[0], "--domain", PARKING)
    with FakeOpenAI(office) as server:
        model = f"endpoint:m@{server.url}"
        arguments = ("--teacher", model, "--user", model, "--count", 1, "coldstart.attempts=4")
        muarl("coldstart", "--scenario", PARKING, *arguments)
    card = Path("runs/coldstart/dataset")
    assert len((card / "episodes.jsonl").read_text().splitlines()) == 1
    assert "1 conversations came out as recorded, 0 did not" in muarl("coldstart", "--check", card, "-d", PARKING)
    forget()
    assert f"--domain {stranger / 'parking.py'}:PARKING" in muarl("coldstart", "--check", card, code=2)


def test_the_remaining_commands_take_it(stranger: Path) -> None:
    from muarl_tools.commands.mcp import pick

    domain, task = pick(PARKING, task="3")
    assert domain.name == "parking" and task is not None and task.id == "parking-test-0-3"
    assert "no installed benchmark has the domain parking" in muarl(
        "data", "overlap", "--domain", PARKING, "--count", 5, code=2
    )
    assert "parking:train (5 tasks)" in muarl(
        "data", "overlap", "--domain", PARKING, "--count", 5, "--benchmark", f"{PARKING}:test"
    )
    assert "memory" in muarl("plan", "cpu", "--domain", PARKING, "model.max_context=2048").lower()


def test_a_plug_in_is_simply_there(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    write_parking(repository / "docs" / "domains.md", site / "parking_env")
    (site / "parking_env" / "__init__.py").write_text("")
    info = site / "parking_env-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parking-env\nVersion: 1.0\n")
    place = "parking_env.parking:PARKING"
    (info / "entry_points.txt").write_text(f"[muarl.environments]\nparking = {place}\nbank-generated = {place}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(site))
    registry._plugins.cache_clear()
    line = next(
        line for line in CliRunner().invoke(app, ["domains"]).stdout.splitlines() if line.startswith("parking ")
    )
    assert "parking-env 1.0" in line and "yes" in line
    assert "the plug-in bank-generated of parking-env is not used: muarl has an environment of that name" in muarl(
        "domains"
    )
    assert "12 test tasks of parking" in muarl("generate", "parking", "--count", 12)
    muarl("eval", "parking", "--agent", "idle", "--tasks", 2, "--trials", 1)
    assert "Rules: parking (2)" in muarl("audit", "runs/eval-parking"), "those of its code, which is at hand"
    Path("mine.yaml").write_text("extends: cpu\nname: mine\ndomain: {name: parking}\n")
    assert "name: parking" in muarl("train", "--config", "mine.yaml", "model.max_context=2048", "--dry-run")
    muarl("eval", "--resume", "runs/eval-parking", "eval.trials=2")
    assert registry.approved() == (), "installing it was approval enough"
