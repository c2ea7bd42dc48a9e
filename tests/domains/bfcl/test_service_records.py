"""The gold calls of BFCL's ticket, trading, travel and vehicle classes against records of the original code."""

from __future__ import annotations

import ast
import json
import lzma

import pytest

from muarl_worlds.bfcl import tickets, trading, travel, vehicle

pytestmark = pytest.mark.data

MODULES = (tickets, trading, travel, vehicle)
CATEGORIES = ("base", "miss_func", "miss_param", "long_context")


def rows(path):
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def run(api, text):
    call = ast.parse(text, mode="eval").body
    args = [ast.literal_eval(a) for a in call.args]
    value = getattr(api, call.func.id)(*args, **{k.arg: ast.literal_eval(k.value) for k in call.keywords})
    return json.dumps(value) if type(value) is dict else str(value)


@pytest.mark.parametrize("revision", ["v3", "v4"])
def test_every_gold_call_gives_the_recorded_text_and_state(shared_data, revision):
    folder = shared_data / "bfcl" / revision
    literals = json.loads((folder / "long_context.json").read_text(encoding="utf-8"))
    with lzma.open(shared_data / "oracle" / f"bfcl_{revision}_gold_outputs.jsonl.xz", "rt", encoding="utf-8") as file:
        records = {row["id"]: row for row in map(json.loads, file)}
    classes = {module.REVISIONS[revision].name: module.REVISIONS[revision] for module in MODULES}
    calls = states = 0
    for category in CATEGORIES:
        name = f"BFCL_{revision}_multi_turn_{category}.json"
        gold = {row["id"]: row["ground_truth"] for row in rows(folder / "possible_answer" / name)}
        for entry in rows(folder / name):
            record = records[entry["id"]]
            apis = {c: classes[c]() for c in entry["involved_classes"] if c in classes}
            for c, api in apis.items():
                api.load(entry["initial_config"].get(c, {}), literals if category == "long_context" else None)
            for turn, outs in zip(gold[entry["id"]], record["outs"], strict=True):
                for text, out in zip(turn, outs, strict=True):
                    owner = next((a for a in apis.values() if hasattr(a, text.partition("(")[0])), None)
                    if owner is not None:
                        assert run(owner, text) == out, (entry["id"], text)
                        calls += 1
            for c, api in apis.items():
                assert json.loads(json.dumps(api.state())) == record["state"][c], (entry["id"], c)
                states += 1
    assert calls > 3000 and states == 724


@pytest.mark.parametrize("revision", ["v3", "v4"])
def test_the_tools_and_their_parameters_are_those_that_are_documented(shared_data, revision):
    documents = ("ticket_api", "trading_bot", "travel_booking", "vehicle_control")
    for module, document in zip(MODULES, documents, strict=True):
        cls = module.REVISIONS[revision]
        tools = {n: getattr(cls, n) for n in dir(cls) if hasattr(getattr(cls, n), "__tool_kind__")}
        documented = rows(shared_data / "bfcl" / revision / "multi_turn_func_doc" / f"{document}.json")
        assert set(tools) == {d["name"] for d in documented}
        for d in documented:
            code = tools[d["name"]].__code__
            parameters = code.co_varnames[1 : code.co_argcount]
            assert set(parameters) == set(d["parameters"]["properties"]), d["name"]
            assert tools[d["name"]].__qualname__ == f"{cls.name}.{d['name']}"
