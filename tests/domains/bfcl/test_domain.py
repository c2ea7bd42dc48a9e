"""BFCL as a domain: a world for each task, in the semantics of the benchmark and in those of training."""

from __future__ import annotations

import pytest

from muarl.basics.errors import ConfigError, DataError
from muarl.domains.tasks import Task
from muarl.types.chat import ToolCall
from muarl_worlds.bfcl.apis import CLASSES
from muarl_worlds.bfcl.domain import Bfcl, classes_of, offered_specs, withheld
from support.waiting import in_threads

FILES = {"docs": {"type": "directory", "contents": {}}, "a.txt": {"type": "file", "content": "one"}}
CONFIG = {"GorillaFileSystem": {"root": {"home": {"type": "directory", "contents": FILES}}}}


def make(task_id="t", classes=("GorillaFileSystem", "TwitterAPI"), config=CONFIG, long_context=False, **fields):
    data = {"involved_classes": list(classes), "initial_config": config, "long_context": long_context}
    return Task(task_id, "bfcl", "", None, initial_data=data, **fields)


def call(name, raw=None, **arguments):
    return ToolCall("1", name, arguments, raw=raw)


def test_all_tools_have_a_kind_and_a_spec():
    for revision, count in (("v3", 129), ("v4", 128)):
        domain = Bfcl(revision)
        assert len(domain.tool_names()) == len(domain.tool_specs()) == count
        assert {domain.kind_of(name) for name in domain.tool_names()} <= {"read", "write", "generic"}
    assert (domain.kind_of("cd"), domain.kind_of("ls"), domain.kind_of("book_flight")) == ("write", "read", "write")
    with pytest.raises(KeyError):
        domain.kind_of("nothing")
    with pytest.raises(ConfigError, match="BFCL has v3 and v4, not 'v5'"):
        Bfcl("v5")


def test_a_task_offers_its_classes_tools_but_those_that_come_later():
    domain = Bfcl("v4")
    task = make(agenda={"turns": ["a", None], "brings": {"1": ["mv", "ls"]}})
    names = [spec.name for spec in domain.specs_for(task)]
    assert withheld(task) == {1: ("mv", "ls")}
    assert "mv" not in names and "ls" not in names and "cp" in names and "post_tweet" in names and "mean" not in names
    assert offered_specs("v4", task) == domain.specs_for(task)
    assert all(spec.description and spec.parameters["type"] == "object" for spec in domain.specs_for(task))
    assert (
        domain.world(task).call("assistant", call("ls")).content == '{"current_directory_content": ["docs", "a.txt"]}'
    )
    given = Bfcl("v4", specs=lambda t: (domain.tool_specs()[0],))
    assert given.specs_for(make(benchmark=True)) == (domain.tool_specs()[0],)
    assert given.specs_for(task) == domain.specs_for(task)
    assert domain.policy_for(task) == "" and Bfcl(policy="Be kind.").policy_for(task) == "Be kind."


def test_official_worlds_run_calls_as_text():
    world = Bfcl("v4", semantics="official", label="me").world(make())
    assert world.call("assistant", call("cd", folder="docs")).content == '{"current_working_directory": "docs"}'
    assert world.call("assistant", call("cd", raw="cd('..')")).content == "{}"
    wrong = world.call("assistant", call("mean", numbers=[1]))
    assert (wrong.content, wrong.error) == ("Error during execution: name 'mean' is not defined", True)
    world.call("assistant", call("touch", file_name="cd (x)"))
    assert "me_t_GorillaFileSystem_instance.cd(x)" in world.call("assistant", call("ls")).content
    assert [c.name for c in world.writes] == ["cd", "cd", "touch"]
    odd = world.call("assistant", call("cd", **{"fol der": "x"}))
    assert odd.content.startswith("Error during execution: invalid syntax")


def test_training_worlds_check_arguments_and_keep_texts():
    world = Bfcl("v4").world(make())
    assert world.call("assistant", call("touch", file_name="cd (x)")).content == "None"
    assert "cd (x)" in world.call("assistant", call("ls")).content
    before = world.full_hash()
    wrong = world.call("assistant", call("touch", file_name=5))
    assert wrong.error and "argument 'file_name' must be a string" in wrong.content
    assert world.call("assistant", call("mean", numbers=[1])).error
    assert world.full_hash() == before and len(world.writes) == 1
    assert world.call("assistant", call("touch", raw="touch(file_name='b')")).content == "None"


def test_what_cannot_be_read_and_the_user_get_errors():
    world = Bfcl("v4", semantics="official").world(make())
    invalid = world.call("assistant", ToolCall("1", "cd", invalid="not JSON"))
    assert invalid.error and "not JSON" in invalid.content
    assert world.call("user", call("ls")).error
    with pytest.raises(ValueError, match="'mean' not found"):
        world.invoke("assistant", "mean", {"numbers": [1]})
    assert world.invoke("assistant", "ls", {}) == {"current_directory_content": ["docs", "a.txt"]}


def test_states_have_digests():
    domain = Bfcl("v4")
    one, two = domain.world(make()), domain.world(make())
    assert one.digest() == two.digest() and len(one.digest()) == 64
    one.call("assistant", call("cd", folder="docs"))
    assert one.digest() == two.digest() and one.full_hash() != two.full_hash()
    one.call("assistant", call("mkdir", dir_name="x"))
    assert one.digest() != two.digest()
    assert one.full_hash("user") is None
    assert Bfcl("v4").world().digest() and len(Bfcl("v4").world().instances.apis) == len(CLASSES)


def test_a_malformed_task_is_named():
    with pytest.raises(DataError, match="task 't': BFCL has no API class 'Nothing'"):
        classes_of(make(classes=("Nothing",)))
    with pytest.raises(DataError, match="task 't': its initial state is malformed"):
        Bfcl("v4").world(make(config={"GorillaFileSystem": {"root": {"home": {}}}}))
    with pytest.raises(DataError, match="muarl data fetch bfcl"):
        Bfcl("v4").world(make(long_context=True))


def test_a_task_of_the_same_id_with_another_state_has_its_own():
    domain = Bfcl("v4")
    first = domain.world(make())
    other = {"GorillaFileSystem": {"root": {"other": {"type": "directory", "contents": {}}}}}
    second = domain.world(make(config=other))
    assert first.call("assistant", call("pwd")).content == '{"current_working_directory": "/home"}'
    assert second.call("assistant", call("pwd")).content == '{"current_working_directory": "/other"}'


def test_a_thousand_episodes_of_one_task_do_not_touch_each_other():
    domain, task = Bfcl("v3", semantics="official"), make(classes=CLASSES)
    fresh = domain.world(task).full_hash()
    hashes = {}

    def play(number):
        world = domain.world(task)
        for _ in range(number % 3):
            world.call("assistant", call("touch", file_name=f"f{number % 7}"))
            world.call("assistant", call("authenticate_twitter", username="x", password="y"))
            world.call("assistant", call("post_tweet", raw="post_tweet(content='x')"))
            world.call("assistant", call("logarithm", value=3.0, base=2.0, precision=number % 7 + 1))
            world.call("assistant", call("get_current_speed"))
        hashes[number] = world.full_hash()

    def work(first):
        for number in range(first, 1000, 8):
            play(number)

    in_threads(work)
    assert len(hashes) == 1000
    assert all(hashes[n] == fresh for n in hashes if n % 3 == 0)
    assert len({hashes[n] for n in hashes if n % 3}) == 14  # by the number of rounds and the file's name
    assert domain.world(task).full_hash() == fresh
