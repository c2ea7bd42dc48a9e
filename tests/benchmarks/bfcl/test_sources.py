"""BFCL's data out of wheels, unpacked ones, checkouts and installed folders; through pip where they are fetched."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile

import pytest
from typer.testing import CliRunner

from muarl.basics import wheels
from muarl.basics.errors import DataError
from muarl.cli.main import app
from muarl_worlds import data, install
from muarl_worlds.bfcl.official.sources import literals_json

LITERALS = "A = ['é', ...]\nB = {'x': -1.5, 'y': (None, True)}\nimport os\nC: int = 5\n"
PACKAGE = "bfcl_eval/"
CODE = f"{PACKAGE}eval_checker/multi_turn_eval/func_source_code/long_context.py"


def sha(content):
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def members(revision):
    """The files of a revision's package, by path in it."""
    return {
        f"{PACKAGE}data/BFCL_{revision}.json": f'{{"id": "{revision}"}}\n\n{{"id": 2}}\n'.encode(),
        f"{PACKAGE}data/docs/a.json": b"[1]",
        CODE: LITERALS.encode(),
    }


def installed(revision):
    """The same as they are installed."""
    inside = members(revision)
    return {
        f"{revision}/BFCL_{revision}.json": inside[f"{PACKAGE}data/BFCL_{revision}.json"],
        f"{revision}/docs/a.json": b"[1]",
        f"{revision}/long_context.json": literals_json(LITERALS.encode(), "x"),
    }


@pytest.fixture
def manifest(tmp_path, monkeypatch):
    """A small benchmark of the same kind, and an empty data home."""
    files = {"LICENSE": b"Apache", **installed("v3"), **installed("v4")}
    row = {
        "name": "bfcl", "repository": "o/r", "commit": "c" * 40, "folder": "x",
        "wheels": {r: {"requirement": f"bfcl-eval=={r[1]}", "sha256": r * 32} for r in ("v3", "v4")},
        "files": {name: sha(content) for name, content in files.items()},
    }  # fmt: skip
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "bfcl.json").write_text(json.dumps(row))
    monkeypatch.setattr(data, "_MANIFESTS", tmp_path / "manifests")
    monkeypatch.setenv("MUARL_DATA", str(tmp_path / "home"))
    data.manifest.cache_clear()
    yield tmp_path
    data.manifest.cache_clear()


def wheel(folder, revision, change=None):
    folder.mkdir(exist_ok=True)
    file = folder / f"bfcl_eval-{revision}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../outside.txt", "x")
        for name, content in (members(revision) | (change or {})).items():
            if content is not None:
                archive.writestr(name, content)
    return file


def unpack(folder, *revisions):
    for revision in revisions:
        for name, content in members(revision).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    return folder


def files_of(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_one_wheel_brings_one_revision_and_another_joins_it(manifest):
    folder = install.add("bfcl", wheel(manifest / "w", "v3"))
    assert files_of(folder) == installed("v3") and data.parts("bfcl") == ("v3",)
    assert data.read_json_lines("bfcl", "v3/BFCL_v3.json") == [{"id": "v3"}, {"id": 2}]
    assert data.read_json("bfcl", "v3/long_context.json") == {
        "A": ["é", {"__ellipsis__": True}], "B": {"x": -1.5, "y": [None, True]}
    }  # fmt: skip
    with pytest.raises(DataError, match="muarl data fetch bfcl"):
        data.read_text("bfcl", "v4/BFCL_v4.json")
    install.add("bfcl", wheel(manifest / "w", "v4"))
    assert files_of(folder) == installed("v3") | installed("v4") and data.path("bfcl") == folder
    assert sorted(p.name for p in manifest.iterdir()) == ["home", "manifests", "w"]


@pytest.mark.parametrize("kind", ["wheels", "unpacked", "beside", "package", "checkout", "installed"])
def test_other_places_to_take_it_from(manifest, kind):
    source = manifest / "source"
    if kind == "wheels":
        wheel(source, "v3")
        wheel(source, "v4")
    elif kind in ("unpacked", "package"):
        unpack(source, "v4")
    elif kind == "beside":
        unpack(source / "one", "v3")
        unpack(source / "two", "v4")
    elif kind == "checkout":
        unpack(source / "berkeley-function-call-leaderboard", "v4")
        (source / "LICENSE").write_text("Apache")
    else:
        for name, content in (installed("v3") | {"LICENSE": b"another licence"}).items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(content)
    folder = install.add("bfcl", source / "bfcl_eval" if kind == "package" else source)
    expected = {"wheels": ("v3", "v4"), "beside": ("v3", "v4"), "installed": ("v3",)}.get(kind, ("v4",))
    assert data.parts("bfcl") == expected
    assert (folder / "LICENSE").exists() is (kind == "checkout")
    data.path("bfcl")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {f"{PACKAGE}data/docs/a.json": b"[2]"},
            r"docs/a\.json is not the pinned version .* take it from bfcl-eval==3",
        ),
        ({f"{PACKAGE}data/docs/a.json": None}, r"bfcl_eval/data/docs/a\.json is missing"),
        ({CODE: b"A = open('x')"}, "something else than literals"),
        ({CODE: b"A = ["}, r"is not Python: .* \(line 1\)"),
        ({CODE: b"A = " + b"[" * 5000}, "long_context"),
        ({CODE: b"A = " + b"-" * 100000 + b"1"}, "something else than literals"),
    ],
)
def test_other_wheels_are_refused_and_nothing_is_installed(manifest, change, problem):
    with pytest.raises(DataError, match=problem):
        install.add("bfcl", wheel(manifest / "w", "v3", change))
    assert not data.installed() and not list((manifest / "home").iterdir())


def test_what_holds_none_of_it(manifest):
    for source in (manifest, manifest / "manifests"):
        with pytest.raises(DataError, match="it holds none of BFCL's data; give a wheel of bfcl-eval"):
            install.add("bfcl", source)
    with pytest.raises(DataError, match="no such file or folder"):
        install.add("bfcl", manifest / "nowhere")
    (manifest / "x.whl").write_bytes(b"no archive")
    with pytest.raises(DataError, match="cannot be read as a wheel"):
        install.add("bfcl", manifest / "x.whl")


def test_a_damaged_revision_is_named_and_not_carried_on(manifest):
    folder = install.add("bfcl", wheel(manifest / "w", "v3"))
    (folder / "v3/docs/a.json").write_text("[3]")
    with pytest.raises(DataError, match=r"a\.json is not the pinned version"):
        data.path("bfcl")
    install.add("bfcl", wheel(manifest / "w", "v4"))
    assert data.parts("bfcl") == ("v4",) and data.path("bfcl")


def test_wheels_are_fetched_through_pip_by_their_hash(manifest, monkeypatch):
    asked, seen = [], []

    def pip(command, **options):
        assert command[:4] == [sys.executable, "-m", "pip", "download"] and "--require-hashes" in command
        requirement = (manifest.__class__(command[command.index("--requirement") + 1])).read_text()
        asked.append(requirement.strip())
        wheel(manifest.__class__(command[command.index("--dest") + 1]), f"v{requirement[11]}")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(wheels.subprocess, "run", pip)
    folder = install.fetch("bfcl", lambda *progress: seen.append(progress))
    assert files_of(folder) == installed("v3") | installed("v4")
    assert asked == [f"bfcl-eval=={n} --hash=sha256:{f'v{n}' * 32}" for n in (3, 4)]
    assert seen == [("bfcl-eval==3", 1, 2), ("bfcl-eval==4", 2, 2)]


def test_a_failed_download_installs_nothing(manifest, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: x\nERROR: No matching distribution found\n")
    monkeypatch.setattr(wheels.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(DataError, match=r"bfcl-eval==3 could not be downloaded: ERROR: No matching .*--from WHEEL"):
        install.fetch("bfcl")
    assert not data.installed()


def test_the_list_says_which_revisions_are_there(manifest):
    install.add("bfcl", wheel(manifest / "w", "v4"))
    shown = CliRunner().invoke(app, ["data", "list"])
    assert shown.exit_code == 0 and "(v4)" in shown.output.replace("\n", "")


def test_the_shipped_manifest_is_sound():
    wanted = data.manifest("bfcl")
    assert set(wanted.wheels) == {"v3", "v4"} and len(wanted.files) == 35
    assert wanted.wheels["v3"][0] == "bfcl-eval==2025.8.6.2" and wanted.wheels["v4"][0] == "bfcl-eval==2026.3.23"
    assert all(len(hashed) == 64 for _, hashed in wanted.wheels.values())
    assert {group: len(files) for group, files in wanted.groups().items()} == {"LICENSE": 1, "v3": 17, "v4": 17}
