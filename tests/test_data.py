"""Benchmark data: installed whole and checked, or not at all, with a message that says what to do."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import shutil
import threading

import pytest

from muarl.basics.errors import DataError
from muarl_worlds import data, install

FILES = {
    "LICENSE": "MIT",
    "domains/retail/db.json": '{"a": 1}',
    "domains/retail/policy.md": "Be kind.",
    "domains/other/db.json": "[]",
    "guide/text.md": "Play.",
}


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A tiny benchmark with its manifest, and an empty data home."""
    root = tmp_path / "checkout"
    for name, text in FILES.items():
        file = root / ("" if name == "LICENSE" else "data/tiny") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    files = {n: {"sha256": hashlib.sha256(t.encode()).hexdigest(), "bytes": len(t)} for n, t in FILES.items()}
    row = {"name": "tiny", "repository": "o/r", "commit": "c" * 40, "folder": "data/tiny", "files": files}
    (manifests / "tiny.json").write_text(json.dumps(row))
    monkeypatch.setattr(data, "_MANIFESTS", manifests)
    monkeypatch.setenv("MUARL_DATA", str(tmp_path / "home"))
    data.manifest.cache_clear()
    yield root
    data.manifest.cache_clear()


def left(tmp_path):
    home = tmp_path / "home"
    return sorted(p.name for p in home.iterdir()) if home.exists() else []


@pytest.mark.parametrize("inside", ["", "data", "data/tiny"])
def test_add_takes_a_checkout_or_the_folder_itself(source, tmp_path, inside):
    folder = install.add("tiny", source / inside)
    assert folder == data.path("tiny") and data.installed() == ("tiny",)
    assert data.read_text("tiny", "domains/retail/policy.md") == "Be kind."
    assert data.read_json("tiny", "domains/retail/db.json") == {"a": 1}
    assert left(tmp_path) == ["tiny"]
    install.add("tiny", source)  # again, over the old one
    assert left(tmp_path) == ["tiny"]


def test_a_domain_may_be_absent_but_not_incomplete(source, tmp_path):
    shutil.rmtree(source / "data/tiny/domains/other")
    install.add("tiny", source)
    with pytest.raises(DataError, match="muarl data fetch tiny"):
        data.read_text("tiny", "domains/other/db.json")
    (source / "data/tiny/domains/retail/policy.md").unlink()
    with pytest.raises(DataError, match=r"policy\.md is missing: take it from o/r at commit ccccccc"):
        install.add("tiny", source)
    assert left(tmp_path) == ["tiny"] and data.read_text("tiny", "guide/text.md") == "Play."


def test_a_changed_source_file_is_refused_and_nothing_is_installed(source, tmp_path):
    (source / "data/tiny/domains/retail/db.json").write_text("{}")
    with pytest.raises(DataError, match=r"db\.json is not the pinned version \(sha256 .*2 bytes; expected .*8 bytes"):
        install.add("tiny", source)
    assert left(tmp_path) == []


def test_missing_and_damaged_installations_are_named_with_the_remedy(source, tmp_path):
    with pytest.raises(DataError, match=r"run `muarl data add tiny --from DIR` or `muarl data fetch tiny`"):
        data.path("tiny")
    folder = install.add("tiny", source)
    data.path("tiny")
    (folder / "domains/retail/policy.md").write_text("Be rude.")
    with pytest.raises(
        DataError, match=r"policy\.md is not the pinned version .*run `muarl data add tiny --from DIR` again"
    ):
        data.path("tiny")
    (folder / "domains/retail/policy.md").unlink()
    with pytest.raises(DataError, match=r"policy\.md is missing"):
        data.read_text("tiny", "guide/text.md")


def test_wrong_names_and_folders(source, tmp_path):
    with pytest.raises(DataError, match="no benchmark 'tau9'; known: tiny"):
        install.add("tau9", source)
    with pytest.raises(DataError, match="no such folder"):
        install.add("tiny", tmp_path / "nowhere")
    with pytest.raises(DataError, match="holds the data of tiny"):
        install.add("tiny", tmp_path / "manifests")


def test_an_interrupted_copy_leaves_nothing(source, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        install.add("tiny", source)
    assert left(tmp_path) == []


@pytest.fixture
def server(source, tmp_path, monkeypatch):
    site = tmp_path / "site" / "o/r" / ("c" * 40)
    shutil.copytree(source, site)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(tmp_path / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        monkeypatch.setattr(data, "RAW", f"http://127.0.0.1:{running.server_port}")
        yield site
        running.shutdown()


def test_fetch_downloads_the_pinned_commit(server, tmp_path):
    seen = []
    install.fetch("tiny", lambda file, number, total: seen.append((file, number, total)))
    assert seen[-1] == ("guide/text.md", 5, 5)
    assert data.read_text("tiny", "LICENSE") == "MIT" and left(tmp_path) == ["tiny"]


def test_a_failed_download_installs_nothing(server, tmp_path):
    (server / "data/tiny/guide/text.md").write_text("Play!")
    with pytest.raises(DataError, match=r"guide/text\.md is not the pinned version .*try again later"):
        install.fetch("tiny")
    (server / "data/tiny/guide/text.md").unlink()
    with pytest.raises(DataError, match=r"text\.md could not be downloaded: .*data add NAME --from DIR"):
        install.fetch("tiny")
    assert left(tmp_path) == []


def test_no_more_is_downloaded_than_is_wanted(server, tmp_path):
    (server / "data/tiny/guide/text.md").write_text("Play!" * 1_000_000)
    with pytest.raises(DataError, match=r"text\.md is not the pinned version \(sha256 \w+, \d bytes; expected"):
        install.fetch("tiny")
    assert left(tmp_path) == []


def test_the_shipped_manifests_are_sound():
    assert "tau2" in data.known()
    wanted = data.manifest("tau2")
    assert len(wanted.commit) == 40 and "domains/retail/db.json" in wanted.files
    assert all(len(sha) == 64 and size > 0 for sha, size in wanted.files.values())
    assert wanted.url("domains/retail/db.json").endswith(f"{wanted.commit}/data/tau2/domains/retail/db.json")
    assert wanted.url("LICENSE").endswith(f"{wanted.commit}/LICENSE")
