"""Where keys come from, and that nothing else has a say or sees them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl.basics.keys import is_named, read_secret

SECRET = "sk-not-to-be-seen-7f3a"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    monkeypatch.delenv("SOME_KEY_FILE", raising=False)


def key_file(folder: Path, content: bytes = f"{SECRET}\n".encode(), mode: int = 0o600) -> Path:
    path = folder / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_the_environment_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_secret("SOME_KEY") == "" and not is_named("SOME_KEY")
    monkeypatch.setenv("SOME_KEY_FILE", str(key_file(tmp_path)))
    assert read_secret("SOME_KEY") == SECRET and is_named("SOME_KEY")
    monkeypatch.setenv("SOME_KEY", " from-the-environment ")
    assert read_secret("SOME_KEY") == "from-the-environment"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o602, 0o777])
def test_a_file_that_others_can_read_or_change_is_refused(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = key_file(tmp_path, mode=mode)
    monkeypatch.setenv("SOME_KEY_FILE", str(path))
    with pytest.raises(ConfigError, match=f"SOME_KEY_FILE .*mode {mode:o}.*chmod 600 {path}") as caught:
        read_secret("SOME_KEY")
    assert SECRET not in str(caught.value)
    path.chmod(0o400)
    assert read_secret("SOME_KEY") == SECRET


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (f"{SECRET}\n{SECRET}\n".encode(), "characters that no API key has"),
        (f'"{SECRET} "'.encode(), "characters that no API key has"),
        (f"{SECRET}\u00e9".encode(), "characters that no API key has"),
        (SECRET.encode() + b"\xff", "no text"),
        (SECRET.encode() * 1000, "longer than"),
    ],
)
def test_a_file_that_holds_no_key_is_named_and_not_shown(
    content: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY_FILE", str(key_file(tmp_path, content)))
    with pytest.raises(ConfigError, match=f"SOME_KEY_FILE.*{said}") as caught:
        read_secret("SOME_KEY")
    assert SECRET not in str(caught.value)


def test_a_file_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY_FILE", str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="SOME_KEY_FILE.*No such file"):
        read_secret("SOME_KEY")
    monkeypatch.setenv("SOME_KEY_FILE", str(tmp_path))
    with pytest.raises(ConfigError, match="no plain file"):
        read_secret("SOME_KEY")
    os.mkfifo(tmp_path / "pipe", 0o600)
    monkeypatch.setenv("SOME_KEY_FILE", str(tmp_path / "pipe"))
    with pytest.raises(ConfigError, match="no plain file"):  # and it does not wait for a writer
        read_secret("SOME_KEY")
