"""Environments that a person names on the command line: approved for import, and written so that they can be found
again from anywhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl.cli.environment_approval import (
    approved,
    approved_scenarios,
    approved_settings,
    domain_name,
    single,
    weighted,
)
from muarl.environments import registry


@pytest.fixture(autouse=True)
def own_approvals(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test approves counts for it alone."""
    monkeypatch.setattr(registry, "_approved", set())
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_a_file_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert approved("./clinic.py:CLINIC") == f"{tmp_path}/clinic.py:CLINIC"
    assert registry.approved() == (f"{tmp_path}/clinic.py:CLINIC",)
    assert approved("retail-generated") == "retail-generated" and approved(None) is None
    assert len(registry.approved()) == 1, "muarl's own need no approval"


def test_a_module_may_lie_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_clinic_of_a_test.py").write_text("raise RuntimeError('imported')")
    monkeypatch.chdir(tmp_path)
    assert approved("some_clinic_of_a_test:CLINIC") == "some_clinic_of_a_test:CLINIC"
    assert sys.path[-1] == str(tmp_path), "last, so that nothing there can take the place of an installed package"
    assert "some_clinic_of_a_test" not in sys.modules, "naming it imports nothing yet"
    before = list(sys.path)
    assert approved("json.decoder:CLINIC") and sys.path == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("retial-generated", "there is no environment 'retial-generated'; did you mean retail-generated?"),
        ("clinic.py", "say which of its environments: clinic.py:NAME"),
        ("clinic.py:", "must be FILE.py:NAME or package.module:NAME"),
        ("a b:C", "must be FILE.py:NAME or package.module:NAME"),
    ],
)
def test_what_names_nothing(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        approved(name)
    assert said in str(caught.value)


def test_a_misspelt_file_of_the_current_folder_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("library.py").write_text("raise RuntimeError('imported')")
    with pytest.raises(ConfigError) as caught:
        approved("libary")
    said = str(caught.value)
    assert said.startswith("there is no environment 'libary'; did you mean ./library.py:NAME?"), said
    assert "--domain" not in said, "the person may have given it as an argument"


def test_settings_and_scenarios_of_the_command_line_are_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = f"{tmp_path}/clinic.py:CLINIC"
    words = ["rl.steps=3", "domain.name=./clinic.py:CLINIC", "domain.policy=./a.py:B", "name=json:dumps"]
    assert approved_settings(words) == [words[0], f'domain.name="{whole}"', *words[2:]]
    assert registry.approved() == (whole,), "other settings name no code"
    assert approved_settings(["domain.1.name=./other.py:O"]) == [f'domain.1.name="{tmp_path}/other.py:O"']
    assert f"{tmp_path}/other.py:O" in registry.approved()
    assert approved_scenarios(["hotel-generated", "scenes/mine", "./clinic.py:CLINIC"]) == [
        "hotel-generated", "scenes/mine", whole,
    ]  # fmt: skip
    scenarios = "coldstart.scenarios=[hotel-generated, json:A]"
    assert approved_settings([scenarios]) == [scenarios], "nothing there has a path"
    assert "json:A" in registry.approved()
    assert approved_settings(["domain.name={"]) == ["domain.name={"], "told when it is read as a setting"


def test_several_domains_and_their_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = f"{tmp_path}/clinic.py:CLINIC"
    assert domain_name(weighted(["retail-generated"])) == "retail-generated"
    chosen = domain_name(weighted(["retail-generated", "./clinic.py:CLINIC=2.5"]))
    assert chosen == ["retail-generated", {"name": whole, "weight": 2.5}]
    assert registry.approved() == (whole,)
    assert domain_name(weighted(None)) is None


@pytest.mark.parametrize(
    "value", ["retail-generated=0", "retail-generated=-1", "retail-generated=x", "retail-generated=inf"]
)
def test_a_weight_is_above_0(value: str) -> None:
    with pytest.raises(ConfigError, match="NAME=WEIGHT with a weight above 0, such as retail-generated=2"):
        weighted([value])


def test_who_takes_one_domain_refuses_two() -> None:
    assert single(["retail-generated"]) == "retail-generated" and single(None) is None
    with pytest.raises(ConfigError, match="this takes one domain, not retail-generated and airline-generated"):
        single(["retail-generated", "airline-generated"])
