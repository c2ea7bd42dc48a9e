"""All 800 entries of both revisions against records of the original code."""

from __future__ import annotations

import json
import lzma
from collections import Counter

import pytest

from muarl.basics.errors import DataError
from muarl.domains.tooling import tools_of
from muarl_worlds.bfcl import official as bfcl
from muarl_worlds.bfcl.apis import CLASSES, api_class
from muarl_worlds.bfcl.environment import json_state
from muarl_worlds.bfcl.official.toolspecs import documents
from support.waiting import in_threads

pytestmark = [pytest.mark.data, pytest.mark.usefixtures("official_bfcl")]


@pytest.fixture
def records(shared_data):
    def read(name):
        with lzma.open(shared_data / "oracle" / name, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    return read


@pytest.mark.parametrize("revision", bfcl.DOMAINS)
def test_gold_calls_give_the_recorded_texts_and_states_and_are_valid(revision, records):
    domain = bfcl.domain(revision)
    rows = records(f"bfcl_{revision}_gold_outputs.jsonl.xz")
    assert len(rows) == 800
    for row in rows:
        task = bfcl.task(revision, row["id"])
        world = domain.instances(task)
        truth = bfcl.ground_truth(task)
        assert [[world.execute(call).content for call in turn] for turn in truth] == row["outs"], row["id"]
        assert json_state(world.state()) == row["state"], row["id"]
        judged = bfcl.judge(domain, task, [[[call] for call in turn] for turn in truth])
        assert judged.valid and bfcl.strict(judged).valid, row["id"]


@pytest.mark.parametrize("revision", bfcl.DOMAINS)
def test_altered_traces_get_the_recorded_verdict(revision, records):
    rows = records(f"bfcl_{revision}_mutants.jsonl.xz")
    assert len(rows) == 3200
    for row in rows:
        found = bfcl.score_row({"id": row["id"], "calls": row["calls"]}, "line", revision)
        assert (found["valid"], found["error_type"]) == (row["valid"], row["error_type"]), (row["id"], row["op"])


@pytest.mark.parametrize("revision", bfcl.DOMAINS)
def test_tasks_are_those_of_the_files(revision):
    tasks = bfcl.tasks(revision)
    assert tasks == bfcl.tasks(revision, None) and len({task.id for task in tasks}) == 800
    assert {name: len(ids) for name, ids in bfcl.splits(revision).items()} == {
        "test": 800, **dict.fromkeys(bfcl.CATEGORIES, 200)
    }  # fmt: skip
    assert [t.id for t in bfcl.tasks(revision, "miss_func")][:2] == ["multi_turn_miss_func_0", "multi_turn_miss_func_1"]
    spoken = {c: sum(len(bfcl.user_lines(t)) for t in bfcl.tasks(revision, c)) for c in bfcl.CATEGORIES}
    base = {"v3": 745, "v4": 734}[revision]
    assert spoken == {"base": base, "miss_func": base + 200, "miss_param": base + 200, "long_context": base}
    for task in tasks:
        assert task.benchmark and task.domain == "bfcl" and task.tags["revision"] == revision
        assert len(task.actions) == sum(map(len, bfcl.ground_truth(task)))
    with pytest.raises(DataError, match="has no such entry"):
        bfcl.task(revision, "multi_turn_base_200")
    with pytest.raises(DataError, match="it has test, base"):
        bfcl.tasks(revision, "train")
    with pytest.raises(DataError, match="bfcl has v3, v4"):
        bfcl.tasks("v5")


@pytest.mark.parametrize("revision", bfcl.DOMAINS)
def test_gold_actions_lead_to_the_gold_state(revision):
    domain = bfcl.domain(revision)
    for task in bfcl.tasks(revision)[::7]:
        one, two = domain.world(task), domain.instances(task)
        for action in task.actions:
            one.invoke("assistant", action.name, action.arguments)
        for turn in bfcl.ground_truth(task):
            for call in turn:
                two.execute(call)
        assert one.digest() == two.digest(), task.id


@pytest.mark.parametrize("revision", bfcl.DOMAINS)
@pytest.mark.parametrize("name", CLASSES)
def test_tools_and_their_parameters_are_those_that_are_documented(revision, name):
    kind = api_class(revision, name)
    tools = {tool: getattr(kind, tool) for tool in tools_of(kind)}
    found = {tool: set(f.__code__.co_varnames[1 : f.__code__.co_argcount]) for tool, f in tools.items()}
    if (revision, name) == ("v3", "MessageAPI"):
        found["delete_message"].add("message_id")  # BFCL's own code does not take what its document has
    assert found == {d["name"]: set(d["parameters"]["properties"]) for d in documents(revision, name)}
    assert all(f.__qualname__ == f"{kind.name}.{tool}" for tool, f in tools.items())


@pytest.mark.parametrize("revision", bfcl.DOMAINS)
def test_doing_nothing_is_never_valid(revision):
    domain = bfcl.domain(revision)
    errors = Counter(bfcl.do_nothing(domain, task).error_type for task in bfcl.tasks(revision))
    forced = {"v3": {"multi_turn:force_terminated": 1}, "v4": {}}[revision]  # v3's base_154 lacks its last turn
    assert errors == {"multi_turn:empty_turn_model_response": 800 - sum(forced.values()), **forced}


@pytest.mark.parametrize("revision", bfcl.DOMAINS)
def test_missing_functions_come_in_their_turn(revision):
    domain = bfcl.domain(revision)
    for task in bfcl.tasks(revision, "miss_func")[::10]:
        ((turn, names),) = ((int(k), v) for k, v in task.agenda["brings"].items())
        start = {spec.name for spec in domain.specs_for(task)}
        assert start.isdisjoint(names)
        lines = bfcl.user_lines(task, "native")
        assert [spec.name for spec in lines[turn][1]][-len(names) :] == names
        assert [spec.name for spec in bfcl.offered_after(task, turn)][-len(names) :] == names
        assert not any(tools for k, (_, tools) in enumerate(lines) if k != turn)
        assert all(f"'name': '{name}'" in bfcl.user_lines(task, "text")[turn][0] for name in names)


def test_a_thousand_episodes_of_one_entry_do_not_touch_each_other():
    domain = bfcl.domain("v3")
    task = next(t for t in bfcl.tasks("v3", "long_context") if "TravelAPI" in t.initial_data["involved_classes"])
    calls = [call for turn in bfcl.ground_truth(task) for call in turn]

    def play(part):
        world = domain.instances(task)
        return [world.execute(call).content for call in calls[:part]], world.digest(private=True)

    alone = [play(part) for part in range(len(calls) + 1)]
    found = {}

    def work(first):
        for number in range(first, 1000, 8):
            found[number] = play(number % len(alone))

    in_threads(work)
    assert len(found) == 1000
    assert all(result == alone[number % len(alone)] for number, result in found.items())
