"""``muarl env export``: what it says and writes, the same bytes each time, and what is refused before any work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from muarl.cli.main import app
from support.publishing import own_desk, small_wheel


def export(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["env", "export", *map(str, arguments)], env={"COLUMNS": "200"})


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return small_wheel(tmp_path / "wheels")


@pytest.mark.parametrize("form", ["openenv", "verifiers", "hf-dataset"])
def test_the_same_command_writes_the_same_bytes(
    form: str, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ("bank-generated", "--as", form, "--tasks", 3, "--wheel", wheel)
    done = export(*arguments)
    assert done.exit_code == 0, done.output
    assert "do nothing" in done.output and "scripted expert" in done.output and "3 tasks)" in done.output
    folder = tmp_path / f"muarl-bank-generated-{form}"
    first = contents(folder)
    record = json.loads(first["muarl-export.json"])
    assert (record["form"], record["size"], record["seed"]) == (form, "tiny", 0)
    assert [score["n"] for score in record["scores"]] == [3, 3, 3]
    assert str(tmp_path).encode() not in b"".join(first.values())
    assert export(*arguments).exit_code == 0
    assert contents(folder) == first


def test_an_own_environment_is_copied_with_what_it_reads(wheel: Path, tmp_path: Path) -> None:
    named, out = own_desk(tmp_path / "mine"), tmp_path / "out"
    done = export(named, "--as", "hf-dataset", "--out", out, "--tasks", 3, "--wheel", wheel, "--license", "mit")
    assert done.exit_code == 0, done.output
    assert "Copied: desk.py, names.json, people.py, policy.md" in done.output
    assert "Not copied, since nothing reads them: notes.txt" in done.output
    written = contents(out)
    assert written["environment/names.json"] == (tmp_path / "mine" / "names.json").read_bytes()
    assert b'license: "mit"' in written["README.md"] and b"no scripted expert" in written["README.md"]
    assert str(tmp_path).encode() not in b"".join(written.values())
    assert not any("notes" in name or ".env" in name for name in written)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tau2-retail"], "is a benchmark: its data have a licence of their own"),
        (["bfcl-v3"], "publish bfcl-generated instead"),
        (["mcp-memory"], "MCP server of this machine"),
        (["retail-generatd"], "did you mean retail-generated?"),
        (["bank-generated", "--size", "huge"], "--size is huge"),
        (["bank-generated", "--license", "mit"], "--license: bank-generated is part of muarl"),
        (["bank-generated", "--out", "taken"], "was not written by muarl env export"),
        (["bank-generated", "--wheel", "nothing.whl"], "--wheel: nothing.whl cannot be read as a wheel"),
    ],
)
def test_what_is_refused(
    arguments: list[str], said: str, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("")
    done = export(*arguments, "--as", "openenv", *([] if "--wheel" in arguments else ["--wheel", wheel]))
    assert done.exit_code == 2 and said in " ".join(done.output.split())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["taken", "wheels"]
