"""Generated BFCL tasks: deterministic, solvable, disjoint by split, not the benchmark's, worth nothing to the idle."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muarl.basics.errors import ConfigError
from muarl.domains.generated import SPLITS
from muarl.domains.tasks import Task
from muarl.environments.registry import find
from muarl.types.chat import ToolCall
from muarl_worlds.bfcl import generator, pools
from muarl_worlds.bfcl.calls import call_text, literal_call
from muarl_worlds.bfcl.generated import TINY_TOOLS, generated_bfcl, turn_lines
from muarl_worlds.bfcl.generator import combination_split, make_task
from muarl_worlds.bfcl.parsing import read_tools
from muarl_worlds.bfcl.requests import PERSONAS, RECIPES
from muarl_worlds.bfcl.scenes import SIZES
from support.bfcl import made

ALL_SIZES = ("tiny", "small", "medium", "official")


def truth(task):
    return task.agenda["ground_truth"]


def check_task(task, split, size):
    """Everything that must hold of any generated task, recomputed from its parts."""
    agenda, domain = task.agenda, generated_bfcl(size)
    assert task.domain == "bfcl" and not task.benchmark and agenda["persona"] in PERSONAS
    turns, brings, requests = agenda["turns"], agenda["brings"], agenda["requests"]
    assert 1 <= len(turns) <= 4 and len(truth(task)) == len(turns) and all(turns)
    assert [literal_call(text) for calls in truth(task) for text in calls] == [
        (a.name, dict(a.arguments)) for a in task.actions
    ]
    # the gold calls: each one works, they leave a trace or there is an answer, and only offered tools are used
    world = domain.world(task)
    untouched = world.digest()
    for action in task.actions:
        result = world.call("assistant", ToolCall("", action.name, action.arguments))
        assert not result.error, (task.id, action, result.content)
    assert world.digest() != untouched or task.communicate_info
    assert 1 <= len(task.actions) <= generator.LONGEST
    offered = {spec.name for spec in domain.specs_for(task)}
    later = {name for names in brings.values() for name in names}
    assert {a.name for a in task.actions} <= offered | later and not offered & later
    classes = task.initial_data["involved_classes"]
    assert len(classes) <= SIZES[size].classes[1] and set(task.initial_data["initial_config"]) <= set(classes)
    if size == "tiny":
        assert offered | later <= set(TINY_TOOLS)
    # what is missing
    lacking = [n for n, calls in enumerate(truth(task)) if not calls]
    known, withheld = [r for r in requests if r["unknown"]], [r for r in requests if r["withheld"]]
    assert len(lacking) == len(known) + len(withheld) <= 1
    assert task.tags["intent"] == "missing_value" if known else task.tags["intent"] != "missing_value"
    assert (task.tags["intent"] == "missing_tool") == bool(withheld) == bool(brings)
    for turn, names in brings.items():
        assert [int(turn) - 1] == lacking and names == [withheld[0]["withheld"]]
        assert read_tools(turns[int(turn)]) == names
        before = {call.split("(")[0] for calls in truth(task)[: int(turn)] for call in calls}
        used = {call.split("(")[0] for call in truth(task)[int(turn)]}
        assert names[0] in used - before, "it is needed then, and was not before"
    if known:
        value = known[0]["slots"][known[0]["unknown"]]
        assert value not in turns[lacking[0]] and value in turns[lacking[0] + 1]
    # splits
    first = requests[0]
    assert combination_split(first["kind"], first["slots"]) == split == task.tags["split"]
    assert all(combination_split(r["kind"], r["slots"]) == split for r in requests if RECIPES[r["kind"]].open)
    assert not RECIPES[first["kind"]].narrow
    assert len({json.dumps(r["slots"]) + r["kind"] for r in requests}) == len(requests)
    assert task.reward_basis == (("DB", "COMMUNICATE") if task.communicate_info else ("DB",))
    assert all(text in task.scenario for text in turns)


@pytest.mark.parametrize("size", ALL_SIZES)
@pytest.mark.parametrize("split", SPLITS)
def test_tasks_of_every_size_and_split_are_sound(size, split):
    for task in made(size, split, 40):
        check_task(task, split, size)


@example(-360, "test", 14475, "tiny")
@given(
    st.integers(-(2**40), 2**40), st.sampled_from(SPLITS), st.integers(0, 10**6), st.sampled_from(["tiny", "official"])
)
@settings(max_examples=30)
def test_any_seed_split_and_number_gives_a_sound_task(seed, split, index, size):
    check_task(make_task(split, index, size=size, seed=seed), split, size)


def test_unknown_splits_and_sizes_are_refused():
    with pytest.raises(ValueError, match="split must be one of train, validation, test, not 'dev'"):
        generator.tasks("dev", 1)
    with pytest.raises(ValueError, match="size must be one of tiny, small, medium, official, not 'huge'"):
        generator.tasks("test", 1, size="huge")
    with pytest.raises(ConfigError, match="the sizes of .* are tiny, small, medium, official"):
        find("bfcl-generated").make_domain("huge")


# splits


def chosen(task):
    parts = zip(task.agenda["requests"], generator.combination(task), strict=True)
    return {part for request, part in parts if RECIPES[request["kind"]].open}


@pytest.mark.parametrize("size", ALL_SIZES)
def test_the_splits_are_disjoint(size):
    keys = {
        "combination": lambda t: {generator.combination(t)},
        "its first part, who calls or what for": lambda t: {generator.combination(t)[0]},
        "scenario": lambda t: {t.scenario},
        "gold": lambda t: {json.dumps([[a.name, a.arguments] for a in t.actions or ()])},
        "chosen": chosen,
    }
    for what, key in keys.items():
        found = [set().union(*map(key, made(size, split, 60))) for split in SPLITS]
        assert all(found) and not any(a & b for a, b in combinations(found, 2)), what


def test_a_combination_is_only_defined_for_generated_tasks():
    with pytest.raises(ValueError, match="was not generated"):
        generator.combination(Task("x", "bfcl", "", None))


def test_each_split_gets_its_share_of_every_kind_that_may_come_first():
    narrow = (
        ("ticket_close", "ticket", pools.TICKET_IDS), ("ticket_question", "ticket", pools.TICKET_IDS),
        ("stock_cancel", "order", pools.ORDER_IDS), ("stock_order", "order", pools.ORDER_IDS),
        ("message_delete", "name", pools.PEOPLE), ("message_search", "word", pools.SUBJECTS),
        ("post_retweet", "word", pools.SUBJECTS), ("file_hunt", "file", pools.FILES),
    )  # fmt: skip
    for kind, slot, pool in narrow:
        for part in (pool, pool[: SIZES["tiny"].pool]) if RECIPES[kind].tiny else (pool,):
            counts = Counter(combination_split(kind, {slot: value}) for value in part)
            assert min(counts[split] for split in SPLITS) >= 2, kind
    for split in SPLITS:
        first = {t.agenda["requests"][0]["kind"] for t in made("tiny", split, 150)}
        assert first == {r.name for r in RECIPES.values() if r.tiny and not r.narrow}


@pytest.mark.data
def test_no_generated_task_is_an_official_one(shared_data):
    """Neither what users say, nor the worlds, nor the gold calls of a whole task are any entry's; and calls that carry
    values of their own are not the benchmark's either."""
    said, plans, calls, worlds = set(), set(), set(), set()
    for revision in ("v3", "v4"):
        folder = shared_data / "bfcl" / revision
        for file in folder.glob("BFCL_*multi_turn*.json"):
            for line in file.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                said |= {m["content"].strip() for turn in entry["question"] for m in turn}
                worlds |= {json.dumps(state, sort_keys=True) for state in entry["initial_config"].values()}
        for file in (folder / "possible_answer").glob("BFCL_*multi_turn*.json"):
            for line in file.read_text(encoding="utf-8").splitlines():
                found = [literal_call(c) for turn in json.loads(line)["ground_truth"] for c in turn]
                written = [call_text(*c) for c in found if c is not None]
                plans.add(tuple(written))
                calls |= set(written)
    assert len(said) > 700 and len(plans) > 200
    own = ("send_message", "post_tweet", "place_order", "create_ticket", "book_flight", "mv", "cp", "rm", "echo")
    for size in ALL_SIZES:
        for split in SPLITS:
            for task in made(size, split, 150):
                mine = [call for turn in truth(task) for call in turn]
                assert not said & {text.strip() for text in task.agenda["turns"]}
                assert tuple(mine) not in plans or not any(call.startswith(own) for call in mine), task.id
                assert not calls & {call for call in mine if call.split("(")[0] in own}, task.id
                states = task.initial_data["initial_config"].values()
                assert not worlds & {json.dumps(state, sort_keys=True) for state in states}


# what tasks are like


def test_what_tasks_are_like():
    for size in ALL_SIZES:
        tasks = made(size, "train", 300)
        shape = SIZES[size]
        intents = Counter(t.tags["intent"] for t in tasks)
        missing = (intents["missing_value"] + intents["missing_tool"]) / len(tasks)
        assert missing == pytest.approx(shape.unanswerable, abs=0.09)
        assert 0.3 < intents["missing_tool"] / (intents["missing_value"] + intents["missing_tool"]) < 0.7
        assert intents["several_requests"] and (size == "tiny" or intents["several_apis"])
        personas = Counter(t.tags["persona"] for t in tasks)
        assert all(personas[p] / len(tasks) == pytest.approx(1 / 3, abs=0.1) for p in PERSONAS)
        used = Counter(kind for t in tasks for kind in t.tags["kinds"])
        wanted = {r.name for r in RECIPES.values() if r.tiny or size != "tiny"}
        assert set(used) <= wanted and len(wanted - set(used)) <= 6, wanted - set(used)
        assert max(used.values()) < 0.3 * len(tasks)
    calls = [sum(len(t.actions) for t in made(size, "train", 300)) / 300 for size in ALL_SIZES]
    assert calls == sorted(calls) and calls[0] > 2.5 and calls[-1] > 5.5


def test_later_calls_depend_on_what_earlier_ones_gave():
    """In most tasks some argument stands in no message of the user's: it had to be looked up."""
    depends = Counter()
    for size in ALL_SIZES:
        for task in made(size, "train", 150):
            said = " ".join(task.agenda["turns"])
            given = [v for a in task.actions for v in a.arguments.values() if isinstance(v, str) and a.name != "cd"]
            numbers = [str(v) for a in task.actions for v in a.arguments.values() if type(v) is int]
            depends[size] += any(value not in said for value in (*given, *numbers))
    assert all(depends[size] > 0.35 * 150 for size in ALL_SIZES), depends


def test_what_a_task_offers():
    small, tiny = made("small", "test", 40), made("tiny", "test", 40)
    for task in (*small, *tiny):
        lines = turn_lines(task)
        assert [text for text, _ in lines] == task.agenda["turns"]
        assert [[s.name for s in specs] for _, specs in lines if specs] == list(task.agenda["brings"].values())
    assert max(len(generated_bfcl("tiny").specs_for(t)) for t in tiny) <= 10
    assert min(len(generated_bfcl("small").specs_for(t)) for t in small) >= 8, "all tools of the classes"
    first, again = (generated_bfcl("tiny").specs_for(tiny[0]) for _ in range(2))
    assert all(a is b for a, b in zip(first, again, strict=True)), "prompts are cached by the identity of specs"


ARGUMENTS = sorted({name for spec in generated_bfcl("tiny").tool_specs() for name in spec.parameters["properties"]})
SCALARS = st.one_of(st.text(max_size=6), st.integers(-3, 9), st.none(), st.booleans())
VALUES = st.one_of(SCALARS, st.lists(st.integers(), max_size=2))
CALLS = st.tuples(st.sampled_from(TINY_TOOLS), st.dictionaries(st.sampled_from(ARGUMENTS), VALUES))


@given(st.integers(0, 30), st.lists(CALLS, max_size=4))
@settings(max_examples=60)
def test_whatever_is_called_in_a_tiny_world_there_is_an_answer(number, calls):
    (task,) = generator.tasks("train", 1, size="tiny", start=number)
    world = generated_bfcl("tiny").world(task)
    for tool, arguments in [*calls, ("get_symbol_by_name", {"name": "no such company"}), ("place_order", {})]:
        assert world.call("assistant", ToolCall("c", tool, arguments)).content
