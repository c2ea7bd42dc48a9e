"""Words in conversations: found wherever they were said, and a search that takes too long says how far it came."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, write_episodes
from muarl_tools.view.layout import ServerLinks
from muarl_tools.view.queries import Filter, episodes
from muarl_tools.view.routes import page_of
from muarl_tools.view.runs import Library
from muarl_tools.view.search import look, next_hits, search
from support.viewing import indexed
from support.viewing_pages import look as page


def spoken(name: str, *texts: str, **more: object) -> Episode:
    trace = TokenTrace()
    trace.append_given([40, 41])
    trace.append_sampled([777, 778], [-0.5, -0.25], 3)
    turns = [Turn(Message("user" if n % 2 else "assistant", text)) for n, text in enumerate(texts)]
    return Episode(name, "task", "d", turns, StopReason.USER_STOP, tokens=trace, **more)  # type: ignore[arg-type]


def line(episode: Episode, **options: object) -> bytes:
    return json.dumps(episode.to_json(), **options).encode() + b"\n"  # type: ignore[arg-type]


def test_every_kind_of_text_is_looked_at() -> None:
    call = ToolCall("1", "cancel_order", {"reason": 'no "longer"', "note": "für Zoë"})
    broken = ToolCall("2", "x", invalid="bad", raw="<tool_call>{oops")
    told = spoken("e", "Hi!", "Bitte löschen\nsofort")
    told.turns += [
        Turn(Message("assistant", None, (call, broken), reasoning="They want out")),
        Turn(Message("tool", "Order #W1 is gone", tool_call_id="1")),
    ]
    for ascii_ in (True, False):
        row = line(told, ensure_ascii=ascii_)
        for text in ("want OUT", "cancel_order", "#w1 is", "LÖSCHEN", "für zoë", "{oops", '\\"longer\\"', '"note": "F'):
            assert look(row, "e", text) is not None, (text, ascii_)
        for text in ("777", "user_stop", "task", "schema", "löschen sofort now", "", "zoe"):
            assert look(row, "e", text) is None, text
    hit = look(line(told), "e", "IS")
    assert hit is not None and (hit.who, hit.before, hit.words, hit.after) == ("tool", "Order #W1 ", "is", " gone")
    assert look(line(told), "another", "gone") is None  # the file was replaced
    for bad in (b"", b"{gone\n", b"null\n", b'{"id": "e", "turns": "gone"}\n', b"[" * 99_999 + b"gone\n"):
        assert look(bad, "e", "gone") is None


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4), st.text(min_size=1, max_size=3))
def test_what_is_found_is_what_is_there(texts: list[str], wanted: str) -> None:
    row = line(spoken("e", *texts), ensure_ascii=False) if all(map(_plain, texts)) else line(spoken("e", *texts))
    there = any(wanted.lower() in text.lower() for text in texts)
    assert (look(row, "e", wanted) is not None) == there


def _plain(text: str) -> bool:
    return text == text.encode("utf-8", "ignore").decode()


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Three hundred episodes in six files; every seventh speaks of a lamp."""
    for file in range(6):
        some = [spoken(f"{file}-{n}", "Hi!", "a lamp <b>" if (file * 50 + n) % 7 == 0 else "a rug") for n in range(50)]
        write_episodes(tmp_path / "run" / "episodes" / f"train-{file:04d}.jsonl", some)
    return indexed(tmp_path, tmp_path / "run")


@pytest.mark.parametrize("sort", ["", "oldest", "longest"])
@pytest.mark.parametrize("patience", [1, 7, 10_000])
def test_a_search_goes_on_where_it_stopped(library: Library, sort: str, patience: int) -> None:
    wanted = Filter(text="LAMP", sort=sort)
    ticks = itertools.count()
    found: list[int] = []
    run = library.runs[0]
    with run.store.reading() as db:
        everything = episodes(db, Filter(sort=sort), size=1000)
        skip, asked = 0, 0
        while True:
            part = search(db, run.folder.path, wanted, skip, seconds=patience, now=lambda: next(ticks))
            assert part.seen > skip or part.complete
            found += [at.key for at, _ in part.found]
            skip, asked = part.seen, asked + 1
            if part.complete:
                break
        assert skip == 300 and {1: asked > 100, 7: 20 < asked < 100, 10_000: asked == 1}[patience]
        lamps = {f"{n // 50}-{n % 50}" for n in range(0, 300, 7)}
        assert found == [e.key for e in everything if e.name in lamps]
        hits = [e for e in everything if e.name in lamps]
        keys = [None, *(e.key for e in hits), None]
        for n in (0, 20, len(hits) - 1):
            assert next_hits(db, run.folder.path, wanted, hits[n], seconds=60) == (keys[n], keys[n + 2])
            # With no time left the nearest is looked at, and no more.
            assert next_hits(db, run.folder.path, wanted, hits[n], seconds=-1) == (None, None)


def test_pages_of_a_search(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    first = page(library, "runs", "run", "episodes", text="lamp")
    assert "43 episodes with “lamp”" in first.shown and "Looked through 300 of 300 episodes" in first.shown
    assert "user: a lamp <b>" in first.shown and '<mark class="' not in first.html and "<mark>lamp</mark>" in first.html
    few = page(library, "runs", "run", "episodes", text="rug", steps="2")
    assert "with “rug”" in few.shown and "of 50 episodes" in few.shown
    many = page(library, "runs", "run", "episodes", text="rug")
    on = next(a for a in many.links if "from=" in a)
    rest = dict(part.split("=") for part in on.split("?")[1].split("&"))
    assert "here with “rug”" in page(library, "runs", "run", "episodes", **rest).shown
    assert "No conversation has these words" in page(library, "runs", "run", "episodes", text="sofa").shown
    monkeypatch.setattr("muarl_tools.view.search.SECONDS", 0.0)
    for odd in ("-1", "x", "9" * 30, "400"):
        assert page_of(ServerLinks(), library, ("runs", "run", "episodes"), {"text": "lamp", "from": odd})
    # What the list of a search leads to knows its neighbours.
    inside = next(a for a in first.links if "/episodes/" in a)
    key, query = inside.split("/episodes/")[1].split("?")
    told = page(library, "runs", "run", "episodes", key, **dict(p.split("=") for p in query.split("&")))
    assert any("text=lamp" in a and "/episodes/" in a for a in told.links)


def test_a_file_that_went_away_is_searched_in_vain(library: Library) -> None:
    (library.runs[0].folder.path / "episodes" / "train-0003.jsonl").unlink()
    run = library.runs[0]
    with run.store.reading() as db:
        part = search(db, run.folder.path, Filter(text="lamp"))
    assert part.complete and part.seen == 300 and {at.step for at, _ in part.found} == {0, 1, 2, 4, 5}
