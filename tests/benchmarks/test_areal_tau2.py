"""AReaL-tau2-data: its tasks read from files of our own making in its layout, each played on its own snapshot."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import DataError
from muarl.cli.main import app
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment, _splits
from muarl.environments.registry import find
from muarl.environments.task_files import split_of
from muarl.rewards.gold import gold_world
from muarl_tools.checks.tasks.report import check_source
from muarl_tools.checks.tasks.sources import open_source
from muarl_worlds import data, install
from muarl_worlds.tau.areal_tau2 import installation
from muarl_worlds.tau.areal_tau2.domains import ArealRetail
from muarl_worlds.tau.areal_tau2.rows import ArealFile
from support.toy_shop import Lines, Toy, toy_task

Row = dict[str, Any]
POLICY = "Serve the customers by the book."


def row(task: Task, name: str, snapshot: str, **fields: Any) -> Row:
    """A made task of ours as AReaL-tau2-data writes one."""
    domain = task.domain
    actions = [
        {"action_id": f"{name}_{n}", "requestor": a.requestor, "name": a.name, "arguments": dict(a.arguments)}
        for n, a in enumerate(task.actions or ())
    ]
    instructions = {"domain": domain, "reason_for_call": "I call.", "task_instructions": task.scenario}
    return {
        "id": name,
        "description": {"purpose": f"Customer service simulation for {domain} domain"},
        "user_scenario": {"persona": None, "instructions": instructions},
        "evaluation_criteria": json.dumps({"actions": actions, "communicate_info": []}),
        "db_path": f"tau2_rl_database/{snapshot}",
        **fields,
    }


def toml(tables: Mapping[str, Any]) -> str:
    """Lists of records as TOML, without values that it has no form for."""
    out = []
    for table, records in tables.items():
        for record in records:
            out.append(f"[[{table}]]")
            out += [f"{k} = {_toml_value(v)}" for k, v in record.items() if v is not None]
    return "\n".join(out) + "\n"


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml_value(v)}" for k, v in value.items() if v is not None) + "}"
    return f"[{', '.join(map(_toml_value, value))}]" if isinstance(value, list) else json.dumps(value)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for data; what earlier tests have read is forgotten."""
    monkeypatch.setenv("MUARL_DATA", str(tmp_path / "home"))
    _splits.cache_clear()
    yield tmp_path / "home"
    _splits.cache_clear()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a data set: rows, and snapshots by name (tables of JSON, or the text of a file)."""

    def written(rows: list[Any], snapshots: Mapping[str, Any]) -> Path:
        root = tmp_path / "AReaL-tau2-data"
        (root / "tau2_rl_database").mkdir(parents=True, exist_ok=True)
        lines = (r if isinstance(r, str) else json.dumps(r) for r in rows)
        (root / "tau2_rl_train.jsonl").write_text("".join(f"{line}\n" for line in lines))
        for name, held in snapshots.items():
            (root / "tau2_rl_database" / name).write_text(held if isinstance(held, str) else json.dumps(held))
        return root

    return written


@pytest.fixture(scope="module")
def made() -> dict[str, list[Task]]:
    """Generated tasks that change something."""
    found = {}
    for name in ("retail", "airline", "telecom"):
        environment = find(f"{name}-generated")
        kind_of = environment.make_domain().kind_of
        tasks = environment.make_tasks("train", 12)
        found[name] = [t for t in tasks if any(kind_of(a.name) == "write" for a in t.actions or ())][:2]
    return found


def tables(task: Task) -> dict[str, Any]:
    database = task.database or find(f"{task.domain}-generated").make_domain().base
    return {k: dict(v) if isinstance(v, Mapping) else v for k, v in database.to_tables().items()}


@pytest.fixture
def shop(write: Callable[..., Path], made: dict[str, list[Task]], home: Path) -> Path:
    """Retail tasks on three snapshots: two shops, and a third that is as the first but for one user's name."""
    first, second = made["retail"][0], made["retail"][1]
    third = json.loads(json.dumps(tables(first)))
    user = next(iter(third["users"].values()))
    user["name"]["first_name"] = "Another"
    rows = [
        row(first, "retail_1", "tau2_retail_new_db_1.json"),
        row(second, "retail_2", "tau2_retail_new_db_2.json"),
        row(first, "retail_3", "tau2_retail_new_db_3.json"),
    ]
    held = {f"tau2_retail_new_db_{n}.json": t for n, t in ((1, tables(first)), (2, tables(second)), (3, third))}
    return write(rows, held)


def all_tasks(domain: str) -> dict[str, Task]:
    environment = find(f"areal-tau2-{domain}")
    return {t.id: t for split in environment.splits for t in environment.fixed_tasks(split)}


def test_each_task_plays_on_the_snapshot_that_it_came_with(shop: Path) -> None:
    install.add("areal-tau2", shop)
    found = all_tasks("retail")
    assert sorted(found) == ["retail_1", "retail_2", "retail_3"]
    domain = ArealRetail(policy=POLICY)
    names = {}
    for name, task in found.items():
        users = domain.world(task).toolkit().db.users
        names[name] = {str(users.peek(u)["name"]["first_name"]) for u in users}
        assert task.tags["snapshot"] == f"tau2_retail_new_db_{name[-1]}.json"
        assert task.tags["split"] == split_of(name) and not task.benchmark
    assert "Another" in names["retail_3"] and "Another" not in names["retail_1"]
    assert domain.world(found["retail_1"]).digest() != domain.world(found["retail_3"]).digest()
    assert found["retail_1"].database is all_tasks("retail")["retail_1"].database


def test_gold_actions_lead_to_the_state_that_the_maker_meant(shop: Path, made: dict[str, list[Task]]) -> None:
    install.add("areal-tau2", shop)
    ours, found = made["retail"][0], all_tasks("retail")["retail_1"]
    there = gold_world(find("retail-generated").make_domain(), ours)
    here = gold_world(ArealRetail(policy=POLICY), found)
    assert here.full_hash() == there.full_hash() != ArealRetail(policy=POLICY).world(found).full_hash()


def test_a_task_goes_to_another_process_without_its_database(shop: Path) -> None:
    install.add("areal-tau2", shop)
    task = all_tasks("retail")["retail_2"]
    packed = pickle.dumps(task)
    assert len(packed) < 10_000 and pickle.loads(packed).database is task.database


@pytest.mark.parametrize("domain", ["airline", "telecom"])
def test_the_other_domains(domain: str, write: Callable[..., Path], made: dict[str, list[Task]], home: Path) -> None:
    task = made[domain][0]
    name = "tau2_telecom_db.toml" if domain == "telecom" else "tau2_airline_new_db_1.json"
    held: Any = tables(task)
    if domain == "telecom":
        held = toml({k: list(v.values()) if isinstance(v, dict) else v for k, v in held.items()})
    install.add("areal-tau2", write([row(task, f"{domain}_1", name)], {name: held}))
    assert list(all_tasks(domain)) == [f"{domain}_1"] and all_tasks("retail") == {}
    own = all_tasks(domain)[f"{domain}_1"].database
    assert own is not None and task.database is not None
    assert own.to_tables().keys() == task.database.to_tables().keys()


def test_they_are_checked_and_trained_on_by_name(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install.add("areal-tau2", shop)
    monkeypatch.setattr(ArealRetail, "policy", POLICY)
    fresh = Environment(**{**vars(find("areal-tau2-retail")), "domain": ArealRetail(policy=POLICY)})
    monkeypatch.setattr("muarl_tools.checks.tasks.sources.find", lambda *_: fresh)
    report = check_source(open_source("areal-tau2-retail"))
    assert report.count == 3 and not report.of("error")
    place = fresh.place()
    drawn = place.draw("train", 1, 0, 0)
    assert drawn[0].id in ("retail_1", "retail_2", "retail_3")
    place.check(drawn)  # gold actions are replayed, each on its own snapshot
    assert POLICY in place.system_prompt(drawn[0]) and "<policy>" in place.system_prompt(drawn[0])


def test_all_tasks_of_a_fixed_set_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = Environment(name="toy", domain=Toy, tasks={"train": [toy_task(f"t{n}") for n in range(205)]})
    monkeypatch.setattr("muarl_tools.checks.tasks.sources.find", lambda *_: environment)
    assert len(open_source("toy").tasks) == 205 and len(open_source("toy", count=3).tasks) == 3


@pytest.mark.parametrize(("own", "reward"), [("retail_1", 1.0), ("retail_2", 0.0)])
async def test_a_conversation_is_played_on_the_tasks_own_snapshot_and_rewarded_by_it(
    own: str, reward: float, shop: Path
) -> None:
    """An agent that makes the gold writes of a task, in that task's world and in another's."""
    install.add("areal-tau2", shop)
    environment = Environment(**{**vars(find("areal-tau2-retail")), "domain": ArealRetail(policy=POLICY)})
    found = all_tasks("retail")

    class Users:
        name = "lines"

        def __call__(self, task: Task, *, seed: int) -> Lines:
            return Lines("Please do it.")

    task = next(t for split in environment.splits for t in environment.fixed_tasks(split) if t.id == own)
    async with environment.start(task, users=Users()) as session:
        for action in found["retail_1"].actions or ():
            call = {"id": "1", "function": {"name": action.name, "arguments": json.dumps(dict(action.arguments))}}
            await session.step({"role": "assistant", "tool_calls": [call]})
        await session.step("It is done.")
        assert session.result.reward == reward


def test_ids_that_stand_twice_and_unknown_fields_are_told(
    write: Callable[..., Path], made: dict[str, list[Task]], home: Path
) -> None:
    task, name = made["retail"][0], "a.json"
    odd = row(task, "retail_1", name, colour="red")
    odd["user_scenario"]["instructions"]["mood"] = "calm"
    root = write([row(task, "retail_1", name), odd, row(task, "retail_2", "/elsewhere/a.json")], {name: tables(task)})
    told = CliRunner().invoke(app, ["data", "add", "areal-tau2", "--from", str(root)])
    assert told.exit_code == 0, told.output
    assert "3 tasks: retail 3" in told.output and "1 tasks have the id of an earlier one" in told.output
    assert "unknown field colour in 1 tasks" in told.output
    assert "unknown field user_scenario.instructions.mood in 1 tasks" in told.output
    assert "not the file whose sum others have published" in told.output
    assert sorted(all_tasks("retail")) == ["retail_1", "retail_1#2", "retail_2"]
    assert [one.row["id"] for one in ArealFile(root / "tau2_rl_train.jsonl")] == ["retail_1", "retail_1#2", "retail_2"]


WRONG = [
    ("not json", r"line 2: not JSON"),
    ("[1]", r"line 2: "),
    ({"id": 3}, r"line 2: id must be a string, not int"),
    ({"id": ""}, r"line 2: id must not be empty"),
    ({"db_path": None}, r"line 2: db_path must be a string, not NoneType"),
    ({"db_path": "tau2_rl_database/../.bashrc"}, r"line 2: db_path must name a \.json or \.toml file"),
    ({"db_path": "tau2_rl_database/missing.json"}, r"line 2: its db_path names .*missing\.json, which is not there"),
    ({"evaluation_criteria": "{"}, r"line 2: evaluation_criteria is a string, and not of JSON"),
    ({"evaluation_criteria": "[]"}, r"line 2: evaluation_criteria must be an object"),
    ({"evaluation_criteria": {"reward_basis": ["LUCK"]}}, r"line 2: .*reward_basis: unknown component 'LUCK'"),
    ({"evaluation_criteria": {"actions": [{"name": "x", "arguments": {}}]}}, r"line 2: .*lacks the field 'action_id'"),
    ({"user_scenario": "Be angry."}, r"line 2: user_scenario must be an object"),
    ({"user_scenario": {"instructions": {"domain": "bank"}}}, r"line 2: .*domain must be one of airline.*not 'bank'"),
    ({"id": "airline_9"}, r"line 2: the id 'airline_9' is of airline, and .*domain is retail"),
    ({"id": "x", "user_scenario": {"instructions": "Be angry."}}, r"line 2: neither .*domain nor .*'x' names one"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_what_is_wrong_is_named_with_its_line_and_nothing_is_installed(
    wrong: Any, message: str, write: Callable[..., Path], made: dict[str, list[Task]], home: Path
) -> None:
    task = made["retail"][0]
    good = row(task, "retail_1", "a.json")
    bad = wrong if isinstance(wrong, str) else {**row(task, "retail_2", "a.json"), **wrong}
    root = write([good, bad], {"a.json": tables(task)})
    with pytest.raises(DataError, match=message):
        install.add("areal-tau2", root)
    assert not home.exists() or list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ("{", "line 1: its db_path: .*a.json: neither JSON nor TOML"),
        ("[]", "a.json: must hold the tables of retail"),
        ({"products": {}}, "a.json: retail database: it lacks the table"),
        ({"products": {"1": {}}, "users": {}, "orders": {}}, "a.json: retail database: products"),
    ],
)
def test_a_broken_snapshot_is_named(
    held: Any, message: str, write: Callable[..., Path], made: dict[str, list[Task]], home: Path
) -> None:
    root = write([row(made["retail"][0], "retail_1", "a.json")], {"a.json": held})
    with pytest.raises(DataError, match=message):
        install.add("areal-tau2", root)


def test_what_is_missing_or_was_changed(shop: Path, home: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="run `muarl data add areal-tau2 --from DIR`"):
        installation.installed()
    with pytest.raises(DataError, match=r"has no tau2_rl_train\.jsonl\. Download the data set first: hf download"):
        install.add("areal-tau2", shop / "tau2_rl_database")
    with pytest.raises(DataError, match="no such folder"):
        install.add("areal-tau2", tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"muarl does not download areal-tau2: hf download inclusionAI/AReaL-tau2-data"):
        install.fetch("areal-tau2")
    folder = install.add("areal-tau2", shop)
    listed = CliRunner().invoke(app, ["data", "list"]).output
    assert f"areal-tau2  {folder}" in listed and data.installed() == ()
    (folder / "tau2_rl_database/tau2_retail_new_db_1.json").write_text("{}")
    with pytest.raises(DataError, match=r"new_db_1\.json is missing, or not as it was installed: run"):
        installation.installed()
