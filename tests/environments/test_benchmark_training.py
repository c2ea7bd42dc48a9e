"""Which benchmarks' own tasks a run trains on: its domains', and those that a file of conversations is about."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from muarl.environments.benchmark_training import benchmarks_learned, benchmarks_played


def played_in(run: Path, *domains: str) -> Path:
    """A run's file of conversations."""
    (run / "episodes").mkdir(parents=True)
    (run / "status.json").write_text(json.dumps({"command": "eval"}))
    sections = [{"name": name} for name in domains]
    (run / "config.yaml").write_text(yaml.safe_dump({"domain": sections if len(sections) > 1 else sections[0]}))
    file = run / "episodes" / "eval.jsonl"
    file.write_text("")
    return file


@pytest.mark.parametrize(
    ("domains", "benchmarks"),
    [
        (["tau2-retail"], ("tau2-retail",)),
        (["retail-generated", "tau1-airline", "bfcl-v3"], ("tau1-airline", "bfcl-v3")),
        (["retail-generated"], ()),
        (["./theirs.py:BENCH"], ()),
        (["nobody-knows"], ()),
    ],
)
def test_a_run_says_what_its_conversations_are_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, domains: list[str], benchmarks: tuple[str, ...]
) -> None:
    file = played_in(tmp_path / "run", *domains)
    assert benchmarks_played(file) == benchmarks
    monkeypatch.chdir(file.parent)
    assert benchmarks_played(Path("eval.jsonl")) == benchmarks
    assert benchmarks_learned(["retail-generated"], file) == benchmarks
    assert benchmarks_learned(["bfcl-v3"], file) == tuple(dict.fromkeys(["bfcl-v3", *benchmarks]))


def test_a_run_itself_and_one_of_its_steps_are_known_too(tmp_path: Path) -> None:
    run = played_in(tmp_path / "run", "tau2-retail").parent.parent
    for place in (run, str(run), f"{run}:3", run / "episodes"):
        assert benchmarks_played(place) == ("tau2-retail",)
    assert benchmarks_played(tmp_path / "none") == benchmarks_played("none:3") == ()


def test_of_a_cold_start_its_scenarios_count(tmp_path: Path) -> None:
    """Its section ``domain`` means nothing."""
    file = played_in(tmp_path / "run", "tau1-retail")
    (tmp_path / "run" / "status.json").write_text(json.dumps({"command": "coldstart"}))
    scenarios = ["hotel-generated", "tau2-telecom", "texts/folder"]
    config = {"domain": {"name": "tau1-retail"}, "coldstart": {"scenarios": scenarios}}
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(config))
    assert benchmarks_played(file) == ("tau2-telecom",)


def test_of_a_file_elsewhere_nothing_is_known(tmp_path: Path) -> None:
    file = played_in(tmp_path / "run", "tau2-retail")
    shutil.copy(file, tmp_path / "alone.jsonl")
    assert benchmarks_played(tmp_path / "alone.jsonl") == ()
    for broken in ("{", "7", "domain: 7", "domain: [7, {name: 7}]"):
        (tmp_path / "run" / "config.yaml").write_text(broken)
        assert benchmarks_played(file) == ()
