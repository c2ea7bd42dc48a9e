"""Exported pages: whole, linked among each other, and asking nothing of anybody."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from muarl.basics.errors import MuarlError
from muarl.observe.rundir import RunDirectory
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, Verdict
from muarl_tools.view.export import MARK, write_pages
from support.viewing import indexed
from support.viewing_pages import Page, hostile


@pytest.fixture(scope="module")
def pages(finished: RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    assert write_pages(indexed(folder, finished.path), folder / "pages", episodes=30) > 60
    return folder / "pages"


def test_links_lead_to_files_that_are_there(pages: Path) -> None:
    seen, todo = set(), [pages / "index.html"]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for name, attributes in Page(path.read_text(encoding="utf-8")).tags:
            address = attributes.get("href") or attributes.get("src")
            if address is None or address.startswith("#"):
                continue
            assert not re.match(r"[a-z]+:|/", address), address
            target = (path.parent / address).resolve()
            assert target.is_file() and target.is_relative_to(pages.resolve()), (path, address)
            if name == "a":
                todo.append(target)
    written = {p.resolve() for p in pages.rglob("*.html")}
    assert {p.resolve() for p in seen} == written  # and every page can be come to


def test_pages_have_no_scripts_forms_or_requests(pages: Path) -> None:
    for path in pages.rglob("*.html"):
        page = Page(path.read_text(encoding="utf-8"))
        assert not {"script", "form", "iframe", "img"} & {name for name, _ in page.tags}
        policy = next(a["content"] for n, a in page.tags if n == "meta" and a.get("http-equiv"))
        assert policy is not None and policy.startswith("default-src 'none'") and "script-src" not in policy
        assert "://" not in path.read_text(encoding="utf-8")


def test_episodes_by_token_and_side_by_side_are_there(pages: Path) -> None:
    files = [str(p.relative_to(pages)) for p in pages.rglob("*.html")]
    assert sum(re.fullmatch(r"mine/episodes/[0-9a-f]{16}\.html", f) is not None for f in files) == 30
    assert sum(f.endswith("-token.html") for f in files) == 30
    assert any(f.startswith("pair/") for f in files)
    assert {"mine/tasks.html", "mine/tasks-learnt.html", "mine/tasks-forgotten.html", "mine/tasks-hardest.html"} <= {
        *files
    }


def test_an_export_is_replaced_and_nothing_else(finished: RunDirectory, tmp_path: Path) -> None:
    library = indexed(tmp_path, finished.path)
    target = tmp_path / "pages"
    write_pages(library, target, episodes=3)
    (target / "mine" / "old.html").write_text("old")
    write_pages(library, target, episodes=0)
    assert not (target / "mine" / "old.html").exists() and (target / MARK).exists()
    (target / MARK).unlink()
    with pytest.raises(MuarlError, match="--export"):
        write_pages(library, target)
    assert (target / "index.html").exists()
    with pytest.raises(MuarlError, match="--export"):
        write_pages(library, tmp_path / "pages" / "index.html")


def test_an_export_that_breaks_off_leaves_nothing(
    finished: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> str:
        raise OSError("gone")

    monkeypatch.setattr("muarl_tools.view.export.stylesheet", broken)
    library = indexed(tmp_path / "index", finished.path) if (tmp_path / "index").mkdir() is None else None
    assert library is not None
    with pytest.raises(OSError, match="gone"):
        write_pages(library, tmp_path / "pages", episodes=0)
    assert [p.name for p in tmp_path.iterdir()] == ["index"]


def test_an_episode_whose_tokens_are_none_gets_a_page_that_says_so(tmp_path: Path) -> None:
    trace = TokenTrace([1, 2], [False, True], [0.0, -1.0], [-1, 0])
    talk = [Turn(Message("user", "Hi")), Turn(Message("assistant", "Hello"))]
    one = Episode("odd", "t", "toy", talk, StopReason.USER_STOP, tokens=trace, verdict=Verdict(1.0))
    with RunDirectory(tmp_path / "runs", "odd") as run:
        run.write_episodes("eval", [one, replace(one, id="other")])
    file = run.path / "episodes" / "eval.jsonl"
    file.write_text(file.read_text().replace('"versions": [-1, 0]', '"versions": ["a", 0]', 1))
    (tmp_path / "index").mkdir()
    write_pages(indexed(tmp_path / "index", run.path), tmp_path / "pages")
    shown = [p.read_text(encoding="utf-8") for p in (tmp_path / "pages" / "odd" / "episodes").glob("*.html")]
    assert sum("This episode cannot be shown" in page for page in shown) in (1, 2), "with its page by token"
    assert any("Hello" in page for page in shown)


def test_hostile_names_stay_in_the_folder(tmp_path: Path) -> None:
    library = hostile(tmp_path)
    before = {p for p in tmp_path.rglob("*") if p.suffix != ".sqlite" and "sqlite" not in p.name}
    write_pages(library, tmp_path / "pages")
    made = {p for p in tmp_path.rglob("*") if "sqlite" not in p.name} - before
    assert made and all(p.is_relative_to(tmp_path / "pages") for p in made)
    for path in (tmp_path / "pages").rglob("*.html"):
        assert re.fullmatch(r"[\w./-]+", str(path.relative_to(tmp_path / "pages")))
        assert not {"script", "img"} & {name for name, _ in Page(path.read_text(encoding="utf-8")).tags}
