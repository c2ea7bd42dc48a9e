"""The objects of one episode: running calls, both semantics, states and their digests, and how far results go."""

from __future__ import annotations

import json

import pytest

from muarl_worlds.bfcl import environment
from muarl_worlds.bfcl.apis import APIS, CLASSES, api_class
from muarl_worlds.bfcl.environment import Instances, class_tools, json_state, load_apis, plain, result_text, tool_names

FILES = {"docs": {"type": "directory", "contents": {}}, "a.txt": {"type": "file", "content": "one"}}
CONFIG = {"GorillaFileSystem": {"root": {"home": {"type": "directory", "contents": FILES}}}}
ERROR = "Error during execution: "


def instances(classes=("GorillaFileSystem", "VehicleControlAPI", "MathAPI"), revision="v4", config=CONFIG, **options):
    return Instances(revision, load_apis(revision, classes, config), **options)


def test_every_class_is_there_in_both_revisions_with_tools_of_its_own():
    for revision, kinds in APIS.items():
        assert tuple(kinds) == CLASSES
        assert all(kind.name == name for name, kind in kinds.items())
        every = [tool for name in CLASSES for tool in class_tools(revision, name)]
        assert len(every) == len(set(every)) == {"v3": 129, "v4": 128}[revision]
    with pytest.raises(KeyError):
        api_class("v4", "Nothing")
    names = tool_names("v4", ("MathAPI", "GorillaFileSystem"))
    assert names.owners["cd"] == "GorillaFileSystem" and "cd" in names.writers and "mean" not in names.writers


def test_direct_calls_take_their_arguments_as_they_are():
    world = instances()
    assert world.run("GorillaFileSystem", "touch", {"file_name": "ls (x)"}).content == "None"
    assert "ls (x)" in world.run("GorillaFileSystem", "ls", {}).content
    assert world.call("add", {"a": 1, "b": 2}).content == '{"result": 3}'
    assert world.run("MathAPI", "cd", {}).content == ERROR + "'MathAPI' object has no attribute 'cd'"
    assert world.run("MathAPI", "load", {"config": {}}).content == ERROR + "'MathAPI' object has no attribute 'load'"
    assert world.call("nothing", {}).content == ERROR + "name 'nothing' is not defined"
    unexpected = world.run("GorillaFileSystem", "cd", {"folder": "docs", "foldr": 1})
    assert unexpected.content == ERROR + "GorillaFileSystem.cd() got an unexpected keyword argument 'foldr'"


def test_outcomes_say_what_failed_and_what_wrote():
    world = instances()
    read, write = world.execute("ls()"), world.execute("mkdir(dir_name='new')")
    refused, raised = world.execute("mkdir(dir_name='new')"), world.execute("mkdir()")
    assert [(o.error, o.wrote) for o in (read, write, refused, raised)] == [
        (False, False), (False, True), (True, False), (True, False)
    ]  # fmt: skip
    nested = world.execute("[touch(file_name='b'), ls()]")
    assert (nested.error, nested.wrote) == (False, True)


def test_training_checks_arguments_and_undoes_what_failed():
    world = instances(checked=True)
    before = world.digest(private=True)
    for text in ("mkdir(dir_name=5)", "mkdir()", "mkdir('a', 'b')", "mkdir('a', dir_name='b')", "mkdir(name='x')"):
        outcome = world.execute(text)
        assert outcome.error and outcome.content.startswith(ERROR + "mkdir: "), text
    assert world.execute("cd(folder='nowhere')").error
    assert world.call("mkdir", {"dir_name": None}).error
    assert world.digest(private=True) == before
    assert world.execute("mkdir('new')").wrote and world.digest() != before
    assert world.execute("cd(folder='new')").content == '{"current_working_directory": "new"}'
    assert world.execute("pwd()").content == '{"current_working_directory": "/home/new"}'


def test_a_read_changes_nothing_in_training():
    official, checked = instances(), instances(checked=True)
    for world in (official, checked):
        before = world.digest(private=True)
        world.execute("get_current_speed()")
        assert (world.digest(private=True) == before) is (world is checked)


def test_a_write_that_raises_is_undone_in_training_only(monkeypatch):
    kind = api_class("v4", "VehicleControlAPI")
    original = kind.setHeadlights

    def broken(self, mode):
        self.headLightStatus = "half"
        raise RuntimeError("no light")

    broken.__tool_kind__ = "write"
    monkeypatch.setattr(kind, "setHeadlights", broken)
    assert original is not broken
    for checked in (False, True):
        world = instances(checked=checked)
        assert world.execute("setHeadlights(mode='on')").content == ERROR + "no light"
        assert (world.state()["VehicleControlAPI"]["headLightStatus"] == "half") is not checked


def test_copies_go_their_own_ways():
    world = instances(CLASSES)
    other = world.copy()
    assert other.digest(private=True) == world.digest(private=True)
    world.execute("mkdir(dir_name='new')")
    world.execute("post_tweet(content='hi', tags=[], mentions=[])")
    assert other.digest() == instances(CLASSES).digest() != world.digest()
    assert other.copy(checked=True).execute("mkdir(dir_name=5)").error


def test_digests_are_those_of_equal_states():
    one, two = instances(), instances()
    for name in ("a", "b"):
        one.execute(f"touch(file_name='{name}')")
    for name in ("b", "a"):
        two.execute(f"touch(file_name='{name}')")
    assert one.digest() == two.digest()
    one.execute("cd(folder='docs')")  # where one stands is not compared
    assert one.digest() == two.digest() and one.digest(private=True) != two.digest(private=True)
    assert plain({1: True, "1": 1.0, "s": {2, 1}}) == plain({1: 1, "1": 1, "s": {1, 2}})
    assert plain({1: 0}) != plain({"1": 0})


def test_states_are_json_with_names_and_contents_of_files():
    world = instances()
    world.apis["MathAPI"].odd = {"set": {"b", "a"}, "dots": ..., 1: (1, 2)}
    state = json_state(world.state())
    assert json.loads(json.dumps(state)) == state
    tree = {"docs": {"contents": {}, "name": "docs"}, "a.txt": {"content": "one", "name": "a.txt"}}
    assert state["GorillaFileSystem"] == {"long_context": False, "root": {"contents": tree, "name": "home"}}
    assert state["MathAPI"]["odd"] == {"set": ["'a'", "'b'"], "dots": "Ellipsis", "1": [1, 2]}
    world.apis["MathAPI"].odd = {(1, 2): 3}
    assert json_state(world.state())["MathAPI"]["odd"] == "{(1, 2): 3}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("é", "é"), ({"é": 1}, '{"\\u00e9": 1}'), ({1: None}, '{"1": null}'), ({"a": {1}}, "{'a': {1}}"),
        ([1, "a"], "[1, 'a']"), (None, "None"), (1.0, "1.0"), ({"a": float("inf")}, '{"a": Infinity}'),
        ((1,), "(1,)"), (True, "True"),
    ],
)  # fmt: skip
def test_results_are_written_as_bfcl_writes_them(value, text):
    assert result_text(value) == text


def test_results_do_not_grow_without_end(monkeypatch):
    monkeypatch.setattr(environment, "MAX_TEXT", 100)
    monkeypatch.setattr(environment, "MAX_TEXTS", 200)
    world = instances()
    assert world.execute(f"echo(content='{'a' * 100}')").content == ERROR + "the result is too long"
    assert world.execute(f"cd({'a' * 100})").content == ERROR + "the call is too long"
    world = instances()
    texts = [world.execute("echo(content='aaaaaaaaaa')").content for _ in range(20)]
    assert texts[0] == '{"terminal_output": "aaaaaaaaaa"}' and texts[-1] == ERROR + "the result is too long"


def test_what_an_episode_writes_is_bounded_in_all() -> None:
    instances = Instances("v4", load_apis("v4", ("GorillaFileSystem",), {}))
    text = "x" * 240_000
    answers = [instances.execute(f"touch(file_name='{text}{n}')").content for n in range(200)]
    assert "too much has been written" in answers[-1]
    assert instances.execute("pwd()").content.startswith("{"), "reading goes on"
