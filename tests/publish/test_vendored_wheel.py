"""muarl's wheel: the one that is named, the one that muarl was installed from, or one that is built."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from muarl.basics.errors import ConfigError, DataError
from muarl_tools.publish import vendored_wheel
from muarl_tools.publish.vendored_wheel import find_wheel
from support.publishing import small_wheel


def installed_from(place: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    text = None if place is None else json.dumps({"url": place.as_uri()})
    found = SimpleNamespace(read_text=lambda name: text)
    monkeypatch.setattr(metadata, "distribution", lambda name: found)


def test_a_named_wheel_must_be_of_this_version(tmp_path: Path) -> None:
    assert find_wheel(small_wheel(tmp_path), tmp_path) == small_wheel(tmp_path)
    for wrong in (small_wheel(tmp_path, version="9.9"), small_wheel(tmp_path, name="other")):
        with pytest.raises(ConfigError, match="--wheel: .* is not a wheel of muarl"):
            find_wheel(wrong, tmp_path)
    with pytest.raises(ConfigError, match="cannot be read as a wheel"):
        find_wheel(tmp_path / "nothing.whl", tmp_path)
    (tmp_path / "text.whl").write_text("no archive")
    with pytest.raises(ConfigError, match="cannot be read as a wheel"):
        find_wheel(tmp_path / "text.whl", tmp_path)


def test_the_wheel_that_muarl_was_installed_from_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = small_wheel(tmp_path / "with space")
    installed_from(wheel, monkeypatch)
    assert find_wheel(None, tmp_path) == wheel


def test_without_any_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for gone in (None, tmp_path / "gone.whl", tmp_path):
        installed_from(gone, monkeypatch)
        with pytest.raises(ConfigError, match="there is no wheel of muarl .*--wheel"):
            find_wheel(None, tmp_path)


def test_a_checkout_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    installed_from(tmp_path, monkeypatch)
    asked: list[Any] = []

    def pip(command: list[str], **how: Any) -> Any:
        asked.append(command)
        small_wheel(Path(command[command.index("--wheel-dir") + 1]))
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(vendored_wheel.subprocess, "run", pip)
    assert find_wheel(None, tmp_path / "made").parent == tmp_path / "made"
    assert asked[0][-1] == str(tmp_path)
    failed = SimpleNamespace(returncode=1, stderr="no network")
    monkeypatch.setattr(vendored_wheel.subprocess, "run", lambda command, **how: failed)
    with pytest.raises(DataError, match="could not be built from .*: no network"):
        find_wheel(None, tmp_path / "empty")
