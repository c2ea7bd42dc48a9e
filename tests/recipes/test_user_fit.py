"""Levels of traits are found again in logs of users that have them, and written as settings."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.environments.registry import find
from muarl.recipes.user_fit import check_traits, fit_traits
from muarl.types.episode import write_episodes
from muarl.users.traits.levels import TRAITS
from support.trait_talks import talks

KNOWN = {"withholding": 0.6, "impatience": 0.4, "wandering": 0.3, "mistakes": 0.5}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["retail-generated", "hotel-generated"])
def test_known_levels_are_recovered(name):
    place = find(name).place()
    logs = [e.messages for e in talks(name, KNOWN, 80, seed=99)]
    found = fit_traits(logs, place, find(name).make_tasks("train", 60))
    for trait in TRAITS:
        true, (low, high) = KNOWN.get(trait, 0.0), found.intervals[trait]
        assert abs(found.levels[trait] - true) <= 0.25, trait
        assert low - 0.1 <= true <= high + 0.1, trait
    assert not found.beyond


@pytest.mark.slow
def test_the_command_writes_settings_that_an_evaluation_takes(tmp_path):
    logs, out = tmp_path / "logs.jsonl", tmp_path / "people.yaml"
    write_episodes(logs, talks("retail-generated", KNOWN, 20))
    done = CliRunner().invoke(app, ["user", "fit", str(logs), "--out", str(out), "--tasks", "10"])
    assert done.exit_code == 0, done.output
    assert "20 conversations" in done.output and "withholding" in done.output
    config = load_config(out)
    fitted, practised = config.eval_user.traits, config.user.traits
    assert fitted.any and practised == fitted.model_copy(update={"where_possible": practised.where_possible})
    assert config.user.traits.foreign_language == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--out", "people.txt"], "must end in .yaml"),
        (["--out", "people.yaml", "--domain", "bfcl-generated"], "have no traits"),
        (["--out", "people.yaml", "--domain", "tau2-retail"], "is a benchmark"),
        (["--out", "people.yaml"], "no user says anything"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_any_work(tmp_path, monkeypatch, given, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs.jsonl").write_text('{"messages": [{"role": "assistant", "content": "Hi!"}]}\n')
    done = CliRunner().invoke(app, ["user", "fit", "logs.jsonl", *given])
    assert done.exit_code == 2 and told in " ".join(done.output.split())
    assert not (tmp_path / "people.yaml").exists()


def test_only_agenda_users_of_a_service_can_be_fitted():
    for name in ("retail-generated", "acebench-generated", "telecom-generated"):
        check_traits(find(name).place(), find(name).make_tasks("train", 1)[0])
