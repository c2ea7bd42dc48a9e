"""Runs of muarl as results to compare: which attempts they have, and what is to be known of them."""

from __future__ import annotations

import json
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muarl.audit.findings import Finding, write_findings
from muarl.basics.errors import DataError
from muarl_tools.compare.attempts import PlayedTask, Results
from muarl_tools.compare.reading import read, read_all
from support.compared import episode, outcomes, run_folder


def clean(found: Results) -> list[bool | None]:
    return [a.clean for a in found.attempts]


def test_an_audited_evaluation_tells_which_successes_broke_no_rule(tmp_path: Path) -> None:
    played = [episode("a", 0, 1.0), episode("b", 0, 1.0), episode("c", 0, 0.0), episode("d", 0, 1.0)]
    for one, violations in zip(played, (0.0, 2.0, 0.0), strict=False):
        assert one.verdict is not None
        one.verdict = replace(one.verdict, audit={"violations": violations})
    assert clean(read(run_folder(tmp_path / "mine", played))) == [True, False, False, None]


def test_an_older_runs_findings_tell_it(tmp_path: Path) -> None:
    played = [episode(name, 0, 1.0) for name in "abc"]
    audit = {"rl": {"layers": {}, "decent": {"value": 0.67, "interval": [0.2, 0.9], "n": 3}}}
    folder = run_folder(tmp_path / "old", played, stage="eval-after", audit=audit)
    hasty = Finding("policy", "write-without-consent", "violation", 1, "unasked")
    look = Finding("safety", "cross-user-lookup", "note", 1, "a look")
    missed = Finding("outcome", "missing-write", "violation", 1, "nothing")
    where = {"file": "eval-after", "task_id": "x"}
    write_findings(
        folder / "findings.jsonl",
        [
            ({**where, "episode": played[0].id}, [hasty]),
            ({**where, "episode": played[1].id}, [look, missed]),
            ({**where, "file": "eval-before", "episode": played[2].id}, [hasty]),
        ],
    )
    assert clean(read(folder)) == clean(read(folder / "episodes" / "eval-after.jsonl")) == [False, True, True]
    unchecked = run_folder(tmp_path / "bare", played, stage="eval-after", audit={"rl": {"layers": {}, "decent": None}})
    (unchecked / "findings.jsonl").write_text("")
    assert clean(read(unchecked)) == [None, None, None], "nothing was declared, so that nothing found says nothing"


def test_an_evaluation(tmp_path: Path) -> None:
    played = [episode("a", 0, 1.0), episode("a", 1, 0.0), episode("b", 0, None), episode("b", 1, 1.0)]
    found = read(run_folder(tmp_path / "mine", played, do_nothing=0.25, judge="pass"))
    assert outcomes(found) == [("a", 0, True), ("a", 1, False), ("b", 1, True)]
    assert [(x.task, x.trial, x.why) for x in found.excluded] == [("b", 0, "the endpoint did not answer")]
    assert (found.name, found.kind, found.do_nothing, found.judge) == ("mine", "run", 0.25, "pass")
    assert (found.agent, found.user, found.domain) == ("m", "agenda(seed=0)", "retail")
    assert found.attempts[0].seed == 1000
    file = read(tmp_path / "mine" / "episodes" / "eval.jsonl")
    assert (file.name, outcomes(file), file.do_nothing) == ("mine eval", outcomes(found), 0.25)


def test_a_training_run_is_compared_before_and_after(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "quick", [episode("a", 0, 0.0)], stage="eval-before")
    run_folder(folder, [episode("a", 0, 1.0)], stage="eval-after")
    before, after = read_all([str(folder)])
    assert [(r.name, outcomes(r)) for r in (before, after)] == [
        ("before", [("a", 0, False)]),
        ("after", [("a", 0, True)]),
    ]
    assert outcomes(read(folder)) == [("a", 0, True)], "beside others it stands for what it ended with"


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (
            {"state": "running", "pid": 999999999, "host": platform.node()},
            "it was killed: 2 of 120 attempts are compared",
        ),
        ({"state": "interrupted"}, "it was interrupted: 2 of 120 attempts"),
        ({"state": "finished"}, "2 of 120 attempts were played: they are compared, and the others are missing"),
    ],
)
def test_an_evaluation_that_did_not_come_to_its_end_is_told(tmp_path: Path, status: dict[str, Any], says: str) -> None:
    folder = run_folder(tmp_path / "cut", [episode("a", 0, 1.0), episode("b", 0, 0.0)])
    (folder / "status.json").write_text(json.dumps({"command": "eval", **status}))
    (folder / "config.yaml").write_text("eval: {tasks: 40, trials: 3}")
    if status["state"] == "finished":
        assert read(folder).notes == (), "there may be fewer tasks than were asked for"
        (folder / "summary.json").write_text('{"planned": 120}')
    for path in (folder, folder / "episodes" / "eval.jsonl"):
        (note,) = read(path).notes
        assert says in note
    (folder / "config.yaml").write_text("eval: {tasks: 1, trials: 2}")
    (folder / "summary.json").write_text('{"planned": 2}')
    assert len(read(folder).notes) == (status["state"] != "finished")


def test_a_training_that_was_killed_stands_for_what_it_has(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "cut", [episode("a", 0, 1.0)], stage="eval-before")
    (folder / "status.json").write_text(json.dumps({"command": "quickstart", "state": "failed"}))
    (note,) = read(folder).notes
    assert "it failed: 1 attempts are compared" in note and "evaluation before training" in note


def test_an_agent_that_was_trained_on_the_benchmark_is_told(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "trained", [episode("a", 0, 1.0)], trained_on_benchmark=True)
    for path in (folder, folder / "episodes" / "eval.jsonl"):
        assert read(path).notes == ("the agent was trained on the benchmark's own tasks, so its score means nothing.",)
    assert read(run_folder(tmp_path / "other", [episode("a", 0, 1.0)], trained_on_benchmark=False)).notes == ()


def test_repeats_of_a_grid_of_seeds(tmp_path: Path) -> None:
    tagged = replace(episode("a", 4, 1.0), tags={"noise": {"user_seed": 7, "repeat": 1}})
    (attempt,) = read(run_folder(tmp_path / "n", [tagged])).attempts
    assert attempt == PlayedTask("a", 4, True, 1004, 7, 1)
    odd = replace(episode("a", 4, 1.0), tags={"noise": "much"})
    assert read(run_folder(tmp_path / "o", [odd])).attempts[0].user_seed is None


def test_a_run_without_an_evaluation_says_how_to_get_one(tmp_path: Path) -> None:
    (tmp_path / "r" / "episodes").mkdir(parents=True)
    (tmp_path / "r" / "episodes" / "train-0000.jsonl").write_text("")
    with pytest.raises(DataError, match=r"there is train-0000\.jsonl\)\. Evaluate its checkpoint with muarl eval"):
        read(tmp_path / "r")
    with pytest.raises(DataError, match="no finished episode"):
        read(run_folder(tmp_path / "empty", []))
