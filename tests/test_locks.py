"""uv.lock: in step with pyproject.toml and requirements.lock, and free of addresses that only one machine knows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PYPI = ("https://pypi.org/", "https://files.pythonhosted.org/")
RELOCK = "run: uv lock --default-index https://pypi.org/simple"


@pytest.fixture(scope="module")
def project(repository: Path) -> dict[str, Any]:
    return tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def lock(repository: Path) -> dict[str, Any]:
    return tomllib.loads((repository / "uv.lock").read_text(encoding="utf-8"))


def own_entry(lock: Mapping[str, Any]) -> dict[str, Any]:
    (own,) = (package for package in lock["package"] if package["name"] == "muarl")
    return dict(own)


def specifiers(text: str) -> frozenset[str]:
    """`>=2,<3` in any order."""
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def marker(text: object) -> str:
    """A marker without the quotes and brackets in which two writers differ."""
    return re.sub(r"[()'\"]", "", str(text or "")).strip()


def test_every_address_is_one_of_pypi(repository: Path) -> None:
    text = (repository / "uv.lock").read_text(encoding="utf-8")
    addresses = re.findall(r"(?:https?|file)://[^\"]+", text)
    assert len(addresses) > 500
    assert [a for a in addresses if not a.startswith(PYPI)] == []
    sources = re.findall(r"^source = \{ (\w+) = ", text, re.MULTILINE)
    assert set(sources) == {"registry", "editable"}, "nothing comes from a folder but muarl itself"
    assert sources.count("editable") == 1


def test_it_is_in_step_with_pyproject(project: dict[str, Any], lock: dict[str, Any]) -> None:
    own = own_entry(lock)["metadata"]
    extras = project["project"]["optional-dependencies"]
    asked = [(Requirement(text), "") for text in project["project"]["dependencies"]]
    asked += [(Requirement(text), extra) for extra, texts in extras.items() for text in texts]
    wanted = {
        (
            canonicalize_name(r.name),
            frozenset(r.extras),
            specifiers(str(r.specifier)),
            marker(" and ".join(part for part in (str(r.marker or ""), f"extra == {extra}" if extra else "") if part)),
        )
        for r, extra in asked
    }
    locked = {
        (r["name"], frozenset(r.get("extras", ())), specifiers(r.get("specifier", "")), marker(r.get("marker")))
        for r in own["requires-dist"]
    }
    assert locked == wanted, RELOCK
    assert set(own["provides-extras"]) == set(extras), RELOCK
    assert lock["requires-python"] == project["project"]["requires-python"], RELOCK


def test_its_settings_are_those_of_pyproject(project: dict[str, Any], lock: dict[str, Any]) -> None:
    settings = project["tool"]["uv"]

    def excluded(sets: list[list[dict[str, str]]]) -> set[frozenset[str]]:
        return {frozenset(entry["extra"] for entry in one) for one in sets}

    assert excluded(lock["conflicts"]) == excluded(settings["conflicts"]), RELOCK
    overrides = {Requirement(text).name for text in settings["override-dependencies"]}
    assert {entry["name"] for entry in lock["manifest"]["overrides"]} == overrides, RELOCK
    assert len(lock["supported-markers"]) == len(settings["environments"]), RELOCK


def test_it_has_the_versions_of_requirements_lock(repository: Path, lock: dict[str, Any]) -> None:
    versions: defaultdict[str, set[str]] = defaultdict(set)
    for package in lock["package"]:
        versions[package["name"]].add(str(package.get("version")))
    lines = (repository / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert len(pins) > 50
    for pin in pins:
        (version,) = (clause.version.partition("+")[0] for clause in pin.specifier)
        assert version in versions[canonicalize_name(pin.name)], f"{pin.name}: {RELOCK} --upgrade-package {pin}"
    assert versions["torch"] == {"2.13.0"}


def test_what_a_developer_installs_is_all_in_requirements_lock(repository: Path, project: dict[str, Any]) -> None:
    """Every package that the extra dev names is pinned there."""
    lines = (repository / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pinned = {canonicalize_name(Requirement(line).name) for line in lines if line and not line.startswith("#")}
    extras = project["project"]["optional-dependencies"]
    named = [Requirement(text) for text in extras["dev"]]
    inner = {extra for requirement in named for extra in requirement.extras}
    named += [Requirement(text) for extra in inner for text in extras[extra]]
    assert {canonicalize_name(r.name) for r in named} - {"muarl"} <= pinned


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """uv, where it is installed and can reach PyPI."""
    command = shutil.which("uv") or os.environ.get("UV")
    if command is None:
        pytest.skip("uv is not installed: pip install uv")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)  # that of the tests knows one authority
    asked = subprocess.run(
        [command, "pip", "compile", "-", "--default-index", "https://pypi.org/simple"],
        input="iniconfig", capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if asked.returncode:
        pytest.skip("uv cannot reach pypi.org")
    return command


@pytest.mark.slow
def test_uv_itself_finds_it_in_step(uv: str, repository: Path) -> None:
    command = [uv, "lock", "--check", "--default-index", "https://pypi.org/simple", "--project", str(repository)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_uvx_runs_muarl_from_the_checkout(uv: str, repository: Path, tmp_path: Path) -> None:
    """Of the light core: with the extra train it would fetch gigabytes."""
    command = [uv, "tool", "run", "--default-index", "https://pypi.org/simple", "--from", str(repository), "muarl"]
    words = ["eval", "retail-generated", "--agent", "expert", "--tasks", "3", "--trials", "1", "eval.harder_users=[]"]
    done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(tmp_path.glob("runs/*/summary.json"))
