"""``muarl score`` on the benchmarks' own result files, with judges that fail, and scored in other ways."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from muarl.basics.errors import ConfigError, DataError
from muarl.domains.tasks import Action, Task
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import parse_endpoint
from muarl.rewards import judge
from muarl.types.chat import ToolCall
from muarl_tools.commands import bench
from muarl_worlds.tau import tau1_benchmark as tau1
from muarl_worlds.tau import tau2_benchmark as tau2
from muarl_worlds.tau.mock.domain import Mock
from muarl_worlds.tau.tau1.retail import Tau1Retail
from support.fake_openai import FakeOpenAI, nonsense, status, text

TABLES = {
    "tasks": {"task_1": {"task_id": "task_1", "title": "Test", "status": "pending"}},
    "users": {"user_1": {"user_id": "user_1", "name": "Ann", "tasks": ["task_1"]}},
}
DONE = {"task_id": "task_1", "status": "completed"}
TASK = {
    "id": "t",
    "user_scenario": {"instructions": "Finish it."},
    "evaluation_criteria": {
        "actions": [{"action_id": "0", "name": "update_task_status", "arguments": DONE}],
        "env_assertions": [
            {
                "env_type": "assistant",
                "func_name": "assert_task_status",
                "arguments": {"task_id": "task_1", "expected_status": "completed"},
            }
        ],
        "communicate_info": ["done"],
        "nl_assertions": ["is polite"],
        "reward_basis": ["DB", "ENV_ASSERTION"],
    },
}
JUDGED = {
    **TASK,
    "id": "judged",
    "evaluation_criteria": {**TASK["evaluation_criteria"], "reward_basis": ["NL_ASSERTION"]},
}
INFO = {"environment_info": {"domain_name": "mock"}, "agent_info": {}, "user_info": {}}
SAID = {"role": "assistant", "content": "Done!"}


@pytest.fixture(autouse=True)
def small_world(monkeypatch):
    domain = Mock(database=TABLES, inbox={}, policy="Be kind.", semantics="official")
    monkeypatch.setattr(tau2, "domain", lambda name: domain)
    monkeypatch.setattr(tau2, "task", lambda name, task_id: tau2.task_from_json({**TASK, "id": task_id}, name))
    return domain


def finished(domain):
    call = {"id": "c", "name": "update_task_status", "arguments": DONE}
    answer = domain.world().call("assistant", ToolCall.from_json(call)).content
    return [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "id": "c", "content": answer}, SAID]


def simulation(name, messages=(), reason="user_stop", task_id="t", trial=0, reward=None):
    info = None if reward is None else {"reward": reward}
    return {"id": name, "task_id": task_id, "trial": trial, "termination_reason": reason, "messages": list(messages),
            "reward_info": info}  # fmt: skip


def run(*simulations, tasks=(TASK, JUDGED), info=INFO):
    return {"info": info, "tasks": list(tasks), "simulations": list(simulations)}


def scored(tmp_path, given, who="pass", bench_name="tau2", **options):
    source = tmp_path / "in.json"
    if not isinstance(given, (dict, list)):
        source = given
    else:
        source.write_text(json.dumps(given, indent=1))
    bench.score(bench_name, source, tmp_path / "out.jsonl", who, **options)
    return [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]


def test_a_run_is_scored_by_its_own_tasks_and_compared_with_what_it_says(tmp_path, small_world, capsys):
    did = finished(small_world)
    rows = scored(
        tmp_path,
        run(
            simulation("a", did, reward=1.0),
            simulation("b", reward=1.0),
            simulation("c", did, "max_steps", trial=1, reward=0.0),
            simulation("d", did, "infrastructure_error", trial=1, reward=0.0),
        ),
    )
    assert rows[0] == {
        "domain": "mock", "task_id": "t", "id": "a", "trial": 0, "recorded_reward": 1.0, "reward": 1.0,
        "breakdown": {"DB": 1.0, "ENV_ASSERTION": 1.0},
    }  # fmt: skip
    assert [r["reward"] for r in rows] == [1.0, 0.0, 0.0, 0.0] and rows[3]["excluded"]
    assert capsys.readouterr().out.startswith(
        "4 conversations, mean reward 0.3333, pass^1 0.3333, pass^2 0.0000, pass^3 0.0000, "
        "1 left out (infrastructure), 2 of 3 as recorded: "
    )
    fresh = scored(tmp_path, run(simulation("a", did), tasks=[]), fresh_tasks=True)
    assert fresh[0]["reward"] == 1.0


def test_a_run_saved_as_a_folder_or_on_one_line(tmp_path, small_world):
    folder = tmp_path / "run"
    (folder / "simulations").mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(run()))
    (folder / "simulations" / "a.json").write_text(json.dumps(simulation("a", finished(small_world))))
    assert [r["reward"] for r in scored(tmp_path, folder)] == [1.0]
    assert [r["reward"] for r in scored(tmp_path, folder / "results.json")] == [1.0]
    (tmp_path / "line.json").write_text(json.dumps(run(simulation("a", finished(small_world)))))
    assert [r["reward"] for r in scored(tmp_path, tmp_path / "line.json")] == [1.0]
    with pytest.raises(DataError, match="is a folder, and no run of TAU2"):
        bench.score("tau1", folder, tmp_path / "out.jsonl")


def test_what_is_wrong_with_one_simulation_is_told_of_it_alone(tmp_path, small_world):
    did = finished(small_world)
    edited = [did[0], {**did[1], "content": "{}"}]
    odd = {**TASK, "id": "odd", "evaluation_criteria": {**TASK["evaluation_criteria"], "reward_basis": ["LUCK"]}}
    lost = {**TASK, "id": "lost", "initial_state": {"initialization_actions": [
        {"env_type": "user", "func_name": "burn", "arguments": {}}]}}  # fmt: skip
    gone = {**TASK, "id": "gone", "evaluation_criteria": {**TASK["evaluation_criteria"], "env_assertions": [
        {"env_type": "assistant", "func_name": "assert_task_status",
         "arguments": {"task_id": "task_9", "expected_status": "x"}}]}}  # fmt: skip
    rows = scored(
        tmp_path,
        run(
            simulation("edited", edited),
            simulation("missing", task_id="nowhere"),
            simulation("malformed", [{"role": "robot"}]),
            simulation("odd", task_id="odd"),
            simulation("lost", task_id="lost"),
            simulation("gone", task_id="gone"),
            {**simulation("voice"), "ticks": []},
            simulation("good", did),
            tasks=[TASK, odd, lost, gone],
        ),
    )
    assert [r["reward"] for r in rows] == [None] * 7 + [1.0]
    for row, part in zip(
        rows,
        ["recorded answer is '{}'", "has no task 'nowhere'", "simulations[2], messages[0].role: 'robot'",
         "unknown component 'LUCK'", "'burn' is no function", "Task task_9 not found", "voice call"],
        strict=False,
    ):  # fmt: skip
        assert part in row["error"], row


def test_leniently_differences_are_noted(tmp_path, small_world):
    did = finished(small_world)
    edited = [did[0], {**did[1], "content": "{}"}, SAID]
    (row,) = scored(tmp_path, run(simulation("edited", edited)), lenient=True)
    assert row["reward"] == 1.0 and "recorded answer is '{}'" in row["differences"][0]


def test_details_tell_each_criterion(tmp_path, small_world, capsys):
    rows = scored(
        tmp_path,
        run(simulation("a", finished(small_world)), simulation("b"), simulation("c", reason="timeout")),
        details=True,
    )
    assert rows[0]["criteria"] == {
        "db": True, "env_assertions": [True], "actions": [True], "communicate": [True], "completion": 1.0
    }  # fmt: skip
    assert rows[1]["criteria"]["completion"] == rows[1]["completion"] == 0.0
    assert rows[2]["criteria"] is None and rows[2]["completion"] == 0.0
    assert "task completion 0.3333" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("evaluation", "breakdown"),
    [
        ("deterministic", {"COMMUNICATE": 1.0}),
        ("action", {"ACTION": 1.0}),
        ("all_ignore_basis", {"ACTION": 1.0, "COMMUNICATE": 1.0}),
    ],
)
def test_another_evaluation_is_labelled_as_such(tmp_path, small_world, capsys, evaluation, breakdown):
    given = run(simulation("a", finished(small_world), task_id="judged"))
    (row,) = scored(tmp_path, given, "fail", evaluation=evaluation)
    assert (row["reward"], row["breakdown"], row["evaluation"]) == (1.0, breakdown, evaluation)
    assert f"evaluation '{evaluation}', NOT the official score" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="--evaluation: must be one of all"):
        scored(tmp_path, given, evaluation="best")


VERDICT = json.dumps({"results": [{"expectedOutcome": "x", "reasoning": "y", "metExpectation": True}]})


def test_a_judges_nonsense_costs_only_the_conversation_that_it_was_asked_about(
    tmp_path, small_world, monkeypatch, capsys
):
    monkeypatch.setenv("OPENAI_API_KEY", "key")

    def answer(body):
        return text("Fine, I guess." if "STRANGE" in body["messages"][1]["content"] else VERDICT)

    talks = [[{"role": "user", "content": word}] for word in ("plain", "STRANGE", "plain")]
    with FakeOpenAI(answer) as server:
        rows = scored(
            tmp_path,
            run(*(simulation(str(i), talk, task_id="judged") for i, talk in enumerate(talks))),
            f"endpoint:judge@{server.url}",
        )
    assert [r["reward"] for r in rows] == [1.0, None, 1.0]
    assert "the judge's answer could not be read" in rows[1]["error"] and "Fine, I guess." in rows[1]["error"]
    assert "1 could not be scored, judge endpoint:" in capsys.readouterr().out


def test_a_judge_may_be_asked_several_times_and_compare_says_what_is_its_noise(
    tmp_path, small_world, monkeypatch, capsys
):
    from muarl_tools.compare.comparing import compare
    from muarl_tools.compare.reading import read

    monkeypatch.setenv("OPENAI_API_KEY", "key")
    asked = Counter()

    def answer(body):
        said = body["messages"][1]["content"]
        if "FICKLE" not in said:
            return text(VERDICT)
        asked["fickle"] += 1
        return text(VERDICT if asked["fickle"] % 2 else VERDICT.replace("true", "false"))

    talks = [[{"role": "user", "content": word}] for word in ("plain", "FICKLE")]
    other = {**JUDGED, "id": "other"}
    given = [simulation("0", talks[0], task_id="judged"), simulation("1", talks[1], task_id="other")]
    with FakeOpenAI(answer) as server:
        made = scored(tmp_path, run(*given, tasks=(JUDGED, other)), f"endpoint:judge@{server.url}", verdicts=2)
    assert [(r["task_id"], r["verdict"]) for r in made] == [("judged", 0), ("judged", 1), ("other", 0), ("other", 1)]
    assert sorted(r["reward"] for r in made[2:]) == [0.0, 1.0]
    assert capsys.readouterr().out.startswith("2 conversations,")
    (score,) = compare([read(tmp_path / "out.jsonl")]).scores
    assert score.success.n == 2
    assert score.judges is not None
    assert score.judges["judge"].variance == pytest.approx((0 + 0.5) / 2)
    with pytest.raises(ConfigError, match="always says the same"):
        scored(tmp_path, run(*given), verdicts=2)


def test_an_endpoint_that_fails_half_the_time_is_asked_again(tmp_path, small_world, monkeypatch):
    async def at_once(seconds):
        pass

    def impatient(spec):
        return judge.JudgeModel(Endpoint(parse_endpoint(spec), sleep=at_once))

    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setattr(judge, "open_judge_model", impatient)
    with FakeOpenAI([status(503), text(VERDICT)] * 3) as server:
        given = run(*(simulation(str(i), task_id="judged") for i in range(3)))
        assert [r["reward"] for r in scored(tmp_path, given, f"endpoint:judge@{server.url}")] == [1.0] * 3
    with FakeOpenAI(nonsense()) as server:
        given = run(simulation("a", task_id="judged"), simulation("b", finished(small_world)))
        rows = scored(tmp_path, given, f"endpoint:judge@{server.url}")
    assert rows[0]["reward"] is None and rows[0]["error"] and rows[1]["reward"] == 1.0


def test_a_solo_agents_calls_of_the_users_tools_are_the_users(tmp_path, small_world):
    alone = {**INFO, "agent_info": {"implementation": "llm_agent_solo"}, "user_info": {"implementation": "dummy_user"}}
    call = {"id": "c", "name": "dismiss_notification", "arguments": {"notification_id": "n"}}
    talk = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "id": "c", "content": "Error: Notification n not found", "error": True},
    ]
    (row,) = scored(tmp_path, run(simulation("a", talk, "agent_stop"), info=alone))
    assert row["reward"] == 0.0
    row, _ = scored(tmp_path, run(simulation("a", talk, "agent_stop"), simulation("b", reason="max_steps")))
    assert "Tool 'dismiss_notification' not found." in row["error"]


def test_where_nothing_could_be_scored_the_command_fails_and_says_why(tmp_path, small_world):
    broken = [{"role": "assistant", "tool_calls": [{"id": "c", "name": "nothing", "arguments": {}}]}]
    with pytest.raises(
        DataError, match=r"none of its 1 conversations could be scored. See .*out\.jsonl for the reasons"
    ):
        scored(tmp_path, run(simulation("a", broken)))
    (row,) = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert row["reward"] is None and row["error"]


def test_without_the_data_nothing_is_scored_or_written(tmp_path, monkeypatch):
    monkeypatch.setenv("MUARL_DATA", str(tmp_path / "nothing"))
    with pytest.raises(
        DataError, match="none of its 1 conversations can be scored.* the data of tau1 are not installed"
    ):
        scored(tmp_path, [trajectory()], bench_name="tau1", domain="retail")
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (run(info={}), r"in\.json: info\.environment_info must be an object"),
        (
            run(simulation("a"), info={"environment_info": {"domain_name": "library"}}),
            "domain 'library' is not one of retail",
        ),
        ({**run(), "simulations": 3}, "simulations must be a list"),
        ({"simulations": []}, "neither JSON lines of conversations nor a results.json, with tasks and simulations"),
        ([{"a": 1}], "neither JSON lines of conversations nor a results.json"),
    ],
)
def test_a_file_that_is_no_run_is_refused_whole(tmp_path, given, part):
    with pytest.raises(DataError, match=part):
        scored(tmp_path, given)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_run_that_breaks_off_in_the_middle_is_refused(tmp_path):
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps(run(), indent=1)[:-20])
    with pytest.raises(DataError, match=r"cut\.json: neither JSON lines nor one JSON value: .* line \d+"):
        scored(tmp_path, cut)
    with pytest.raises(DataError, match="neither JSON lines of conversations nor a list of entries with traj"):
        scored(tmp_path, run(), bench_name="tau1")
    with pytest.raises(DataError, match="neither JSON lines of conversations nor a list of entries with traj"):
        scored(tmp_path, run(simulation("a")), bench_name="tau1")


# ---- TAU1 ----

ADDRESS = {"address1": "2 Oak St", "address2": "", "city": "Reno", "state": "NV", "country": "USA", "zip": "89501"}
MOVE = {"user_id": "ann_1", **ADDRESS}
MOVED = json.dumps({"email": "a@b.c", "address": ADDRESS})


@pytest.fixture
def tau1_shop(monkeypatch):
    tables = {"orders": {}, "products": {}, "users": {"ann_1": {"email": "a@b.c", "address": {}}}}
    domain = Tau1Retail(database=tables, policy="# Retail", semantics="official")
    known = (Task("test/0", "retail", "", (Action("modify_user_address", MOVE),), ("DB",), tags={"user_id": "ann_1"}),)
    monkeypatch.setattr(tau1, "domain", lambda name: domain)
    monkeypatch.setattr(tau1, "tasks", lambda name, split="test": known)
    return domain


def trajectory(answer=MOVED, end="###STOP###", **changes):
    arguments = json.dumps(MOVE)
    traj = [
        {"role": "system", "content": "# Retail agent policy"},
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "modify_user_address", "arguments": arguments}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "name": "modify_user_address", "content": answer},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": end},
    ]
    return {"task_id": 0, "trial": 2, "reward": 1.0, "info": {}, "traj": traj, **changes}


def test_tau1s_historical_trajectories(tmp_path, tau1_shop, capsys):
    entries = [trajectory(), trajectory(end="Thanks"), trajectory("{}"), trajectory(task_id=9), trajectory(traj=[3])]
    rows = scored(tmp_path, entries, bench_name="tau1")
    assert rows[0] == {
        "domain": "retail", "task_id": 0, "trial": 2, "recorded_reward": 1.0, "task": "test/0", "reward": 1.0,
        "breakdown": {"DB": 1.0},
    }  # fmt: skip
    assert rows[1]["reward"] == 0.0 and "ended early" in rows[1]["note"]
    assert [r["reward"] for r in rows[2:]] == [None] * 3
    assert (
        "recorded answer is '{}'" in rows[2]["error"]
        and "entry 3" in rows[3]["error"]
        and "traj[0]" in rows[4]["error"]
    )
    assert "3 could not be scored, 1 of 2 as recorded" in capsys.readouterr().out
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps(e) + "\n" for e in entries[:2]))
    assert [r["reward"] for r in scored(tmp_path, lines, bench_name="tau1", domain="retail")] == [1.0, 0.0]
    (lenient,) = scored(tmp_path, entries[2:3], bench_name="tau1", lenient=True)
    assert lenient["reward"] == 1.0 and "1 tool answers otherwise" in lenient["note"]


def test_tau1_in_lines(tmp_path, tau1_shop):
    row = {"task_id": "test/0", "messages": trajectory()["traj"]}
    rows = [row, {**row, "domain": "retail", "task_id": 0}, {**row, "termination_reason": "max_steps"}]
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(r) + "\n" for r in rows))
    answered = scored(tmp_path, source, bench_name="tau1", domain="retail")
    assert [(r["task_id"], r["reward"]) for r in answered] == [("test/0", 1.0), (0, 1.0), ("test/0", 0.0)]
    with pytest.raises(DataError, match="line 1: it lacks the field domain; name it there, or with --domain"):
        scored(tmp_path, source, bench_name="tau1")
    with pytest.raises(ConfigError, match="--domain: tau1 has retail, airline, not 'telecom'"):
        scored(tmp_path, source, bench_name="tau1", domain="telecom")
    with pytest.raises(ConfigError, match="TAU1 has only one way of scoring"):
        scored(tmp_path, source, bench_name="tau1", domain="retail", evaluation="env")


def test_tau1_calls_are_replayed(tmp_path, tau1_shop):
    calls = [{"name": "modify_user_address", "kwargs": MOVE}, {"name": "fly", "arguments": {}}]
    (tmp_path / "in.jsonl").write_text(json.dumps({"i": 0, "split": "test", "calls": calls}) + "\n")
    bench.replay("tau1", tmp_path / "in.jsonl", tmp_path / "out.jsonl", domain="retail")
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert [c["content"] for c in row["calls"]] == [MOVED, "Unknown action fly"]
    assert row["agent_hash"] != tau1_shop.world().full_hash() and row["user_hash"] is None
