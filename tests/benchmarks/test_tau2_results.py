"""TAU2's own result files: as one file, as a folder, and malformed in every way."""

from __future__ import annotations

import json

import pytest

from muarl.basics.errors import DataError
from muarl.records.reading import RecordReader
from muarl_tools.auditing.conversations import ConversationReader
from muarl_tools.auditing.rules import RulesOfConversations
from muarl_worlds.tau import tau2_results as results

TASK = {"id": "7", "user_scenario": {"instructions": "Ask."}, "evaluation_criteria": None}
SIMULATION = {
    "id": "s1",
    "task_id": "7",
    "trial": 1,
    "termination_reason": "user_stop",
    "reward_info": {"reward": 1.0},
    "messages": [{"role": "user", "content": "Bye.", "turn_idx": 0, "raw_data": None}],
}
INFO = {
    "environment_info": {"domain_name": "mock", "policy": ""},
    "agent_info": {"implementation": "llm_agent", "llm": "some-model"},
    "user_info": {"implementation": "user_simulator", "llm": "gpt-4.1"},
}
RUN = {"info": INFO, "tasks": [TASK], "simulations": [SIMULATION]}


def folder(tmp_path, index=("s1",), files=("s1",)):
    (tmp_path / "simulations").mkdir()
    meta = {**RUN, "simulations": [], "simulation_index": [{"id": i} for i in index]}
    (tmp_path / "results.json").write_text(json.dumps(meta))
    for name in files:
        (tmp_path / "simulations" / f"{name}.json").write_text(json.dumps({**SIMULATION, "id": name}))
    return tmp_path


def test_a_run_tells_who_took_part_and_how_each_simulation_ended(tmp_path):
    path = tmp_path / "r.json"
    found = results.results(RUN, path)
    assert (found.domain, found.agent, found.user, found.solo) == ("mock", "some-model", "gpt-4.1", False)
    (one,) = found.simulations
    assert (one.task_id, one.termination_reason, one.reward, len(one.messages)) == ("7", "user_stop", 1.0, 1)
    assert found.task("7") is found.task("7") and found.task("7").domain == "mock"
    alone = {**INFO, "agent_info": {"implementation": "llm_agent_solo"}, "user_info": {"implementation": "dummy_user"}}
    assert results.results({**RUN, "info": alone}, path).solo
    assert results.is_results(RUN) and not results.is_results([RUN]) and not results.is_results({"tasks": []})


def test_a_run_saved_as_a_folder_is_found_from_either_end(tmp_path):
    folder(tmp_path, ("s1", "s2"), ("s2", "s1"))
    assert results.folder_of(tmp_path) == results.folder_of(tmp_path / "results.json") == tmp_path
    assert results.folder_of(tmp_path / "other.json") is None
    found = results.read_folder(tmp_path)
    assert [s.value["id"] for s in found.simulations] == ["s1", "s2"]
    assert found.simulations[0].place.endswith("s1.json")


def test_a_folder_with_results_alone_has_the_simulations_in_them(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(RUN))
    reader = RecordReader()
    reader.formats.insert(0, results.Tau2Files(reader.left_out))
    for path in (tmp_path, tmp_path / "results.json"):
        assert [(one.id, one.place) for one in reader.read(path)] == [
            ("s1", f"{tmp_path}/results.json: simulations[0]")
        ]


@pytest.mark.parametrize(
    ("index", "files", "part"),
    [(("s1", "s2"), ("s1",), r"s2\.json is missing"), (("s1",), ("s1", "s3"), r"s3\.json is not in the index")],
)
def test_a_folder_that_is_not_whole_is_refused(tmp_path, index, files, part):
    with pytest.raises(DataError, match=part):
        results.read_folder(folder(tmp_path, index, files))


def test_a_file_of_a_folder_that_is_not_json_is_named(tmp_path):
    folder(tmp_path)
    (tmp_path / "simulations" / "s1.json").write_text("{")
    with pytest.raises(DataError, match=r"s1\.json: not JSON"):
        results.read_folder(tmp_path)
    (tmp_path / "results.json").unlink()
    with pytest.raises(DataError, match=r"results\.json: No such file"):
        results.read_folder(tmp_path)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"info": None}, r"r\.json: info must be an object, not NoneType"),
        ({"info": {}}, r"info\.environment_info must be an object"),
        ({"info": {"environment_info": {}}}, "domain_name must be a string"),
        ({"tasks": {}}, "tasks must be a list, not dict"),
        ({"simulations": {}}, "simulations must be a list, not dict"),
        ({"simulations": [3]}, r"simulations\[0\] must be an object, not int"),
    ],
)
def test_a_malformed_run_is_named(tmp_path, change, part):
    with pytest.raises(DataError, match=part):
        results.results({**RUN, **change}, tmp_path / "r.json")


@pytest.mark.parametrize(
    ("change", "field", "part"),
    [
        ({"task_id": 7}, "task_id", r"simulations\[0\]: task_id must be a string, not int"),
        ({"termination_reason": "bored"}, "termination_reason", "'bored' is not one of user_stop"),
        ({"messages": None}, "messages", "messages must be a list, not NoneType"),
        ({"messages": [{}]}, "messages", r"messages\[0\]: it lacks the field role"),
        ({"messages": None, "ticks": []}, "messages", "voice call"),
        ({"mode": "full_duplex"}, "messages", "voice call"),
    ],
)
def test_a_malformed_simulation_is_named_when_it_is_read(tmp_path, change, field, part):
    found = results.results({**RUN, "simulations": [{**SIMULATION, **change}]}, tmp_path / "r.json")
    with pytest.raises(DataError, match=part):
        getattr(found.simulations[0], field)


@pytest.mark.parametrize("info", [None, {}, {"reward": None}, {"reward": True}, 3])
def test_a_reward_that_is_not_there_is_none(tmp_path, info):
    found = results.results({**RUN, "simulations": [{**SIMULATION, "reward_info": info}]}, tmp_path / "r.json")
    assert found.simulations[0].reward is None


def test_a_task_that_is_missing_or_malformed_is_named(tmp_path):
    found = results.results({**RUN, "tasks": [3, {"id": "8"}]}, tmp_path / "r.json")
    with pytest.raises(DataError, match=r"r\.json: it has no task '7'"):
        found.task("7")
    with pytest.raises(DataError, match=r"r\.json: tau2 mock task '8': it lacks the field 'user_scenario'"):
        found.task("8")


@pytest.mark.parametrize("alone", [False, True])
def test_an_agent_without_a_user_is_not_audited_for_what_it_asks_and_tells(tmp_path, monkeypatch, alone):
    monkeypatch.setenv("MUARL_DATA", str(tmp_path / "none"))
    implementations = ("llm_agent_solo", "dummy_user") if alone else ("llm_agent", "user_simulator")
    info = {
        "environment_info": {"domain_name": "telecom"},
        "agent_info": {"implementation": implementations[0]},
        "user_info": {"implementation": implementations[1]},
    }
    (tmp_path / "r.json").write_text(json.dumps({**RUN, "info": info}))
    (one,) = ConversationReader(RulesOfConversations()).read(tmp_path / "r.json")
    assert one.rules.declared and one.rules.forbids
    assert (one.rules.consent, bool(one.rules.obligations)) == ((False, False) if alone else (True, True))
