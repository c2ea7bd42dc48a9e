"""The pages as files: a folder to mail, to keep with a paper, or to put on any web server. No scripts, no requests.

A run may have a hundred thousand episodes, so a choice is written: the first and last attempts at tasks that were
learnt, forgotten or are hard, the worst that the audit found, then the newest. What is not written is named without a
link.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from muarl.basics.errors import MuarlError
from muarl.basics.files import clear_disk_errors
from muarl_tools.view import queries
from muarl_tools.view.layout import (
    EPISODES,
    PageAddress,
    episode_at,
    episodes_at,
    home,
    pair_at,
    stylesheet,
    task_at,
    tasks_at,
)
from muarl_tools.view.overview import overview
from muarl_tools.view.queries import Filter, IndexedEpisode
from muarl_tools.view.routes import page_of
from muarl_tools.view.runs import Library, Run

MARK = ".muarl-view"
"""A file that says that a folder was written by an export, and may be replaced by another."""
LISTED, TASK_PAGES, PAIRED, LISTS = 20, 10, 40, 200
"""Pages of the list of episodes and of each list of tasks, tasks with a page side by side, and narrower lists that the
overview leads to (their first page), at most."""

Told = Callable[[int, int], None]


class FileLinks:
    """Links between files: those of ``known`` pages, as seen from the file ``here``."""

    live = False

    def __init__(self, known: dict[PageAddress, str], here: str) -> None:
        self._known, self._folder = known, posixpath.dirname(here)

    def href(self, place: PageAddress) -> str | None:
        """The way to a page's file; None if it is not written."""
        file = self._known.get(place)
        return None if file is None else posixpath.relpath(file, self._folder or ".")

    def asset(self, name: str) -> str:
        """Assets lie beside index.html."""
        return posixpath.relpath(name, self._folder or ".")


class _Asked:
    """Leads nowhere, and remembers where it should have led."""

    live = False

    def __init__(self) -> None:
        self.places: dict[PageAddress, None] = {}

    def href(self, place: PageAddress) -> str | None:
        """None."""
        self.places[place] = None
        return None

    def asset(self, name: str) -> str:
        """As it is."""
        return name


def write_pages(library: Library, folder: Path, *, episodes: int = 200, told: Told | None = None) -> int:
    """Write the pages of all runs into ``folder``, whole or not at all; returns how many. ``episodes``: of each run.
    ``told``: is told at first and after every page how many are written, and of how many.

    MuarlError if the folder holds anything but an earlier export, or if the disk is full.
    """
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARK).exists())):
        raise MuarlError(f"--export: {folder} holds other files; choose an empty or a new folder")
    known = {place: _file(place) for place in _places(library, episodes)}
    count = 0
    if told is not None:
        told(count, len(known))
    with clear_disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            for place, file in known.items():
                page = page_of(FileLinks(known, file), library, place.parts, dict(place.query))
                if page is None:
                    continue
                target = staging / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(page, encoding="utf-8", errors="replace")
                count += 1
                if told is not None:
                    told(count, len(known))
            (staging / "view.css").write_text(stylesheet(), encoding="utf-8")
            (staging / MARK).touch()
            staging.chmod(0o755)
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(staging, folder)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
    return count


def _file(place: PageAddress) -> str:
    """A page's file: names of runs and keys as they are, everything else by its hash."""
    if not place.parts:
        return "index.html"
    kind = place.parts[0]
    if kind == "pair":
        return f"pair/{'-'.join(p[:40] for p in place.parts[1:])}.html"
    _, slug, what, *rest = place.parts
    end = "".join(f"-{value}" for _, value in place.query)
    if what == EPISODES and not rest and place.query and place.query[0][0] != "page":
        end = f"-{_hash(repr(place.query))}"  # values of a filter may be anything
    if rest and what == "tasks":
        end = f"/{_hash(rest[0])}"
    elif rest:
        end = f"/{rest[0]}{end}"
    return f"{slug}/{what}{end}.html"


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _places(library: Library, episodes: int) -> Iterator[PageAddress]:
    """Every page to write."""
    yield home()
    asked = _Asked()
    overview(asked, library)
    yield from [p for p in asked.places if p.parts[-1:] == (EPISODES,) and p.query][:LISTS]
    chosen: dict[tuple[str, int], tuple[Run, IndexedEpisode]] = {}
    for run in library.runs:
        for at in _choice(run, episodes):
            chosen[run.slug, at.key] = run, at
        total = run.ask(queries.count, Filter())
        for page in range(min(LISTED, -(-total // queries.PAGE) or 1)):
            yield episodes_at(run, *((("page", str(page)),) if page else ()))
        yield tasks_at(run)
        fates = run.ask(queries.fates)
        for show in ("hardest", "learnt", "forgotten", "all"):
            pages = -(-len(queries.chosen(fates, show)) // 60) or 1
            for page in range(min(TASK_PAGES, pages)):
                yield tasks_at(run, ("show", show), *((("page", str(page)),) if page else ()))
    for run, at in chosen.values():
        yield episode_at(run, at.key)
        yield episode_at(run, at.key, ("by", "token"))
    for name in dict.fromkeys(at.task for _, at in chosen.values()):
        last: list[tuple[Run, IndexedEpisode]] = []
        for run in library.runs:
            own = run.ask(queries.of_task, name)
            if own:
                yield task_at(run, name)
            ends = queries.first_and_last(own)
            if ends is not None:
                yield pair_at(run, ends[0].key, run, ends[1].key)
            written = [e for e in own if (run.slug, e.key) in chosen]
            last += [(run, e) for e in written[-1:]]
        for n, (run, at) in enumerate(last):
            for other, e in last[n + 1 :]:
                yield pair_at(run, at.key, other, e.key)


def _choice(run: Run, most: int) -> list[IndexedEpisode]:
    """The episodes worth a page: those of the most telling tasks, those with the worst findings, then the newest."""
    out: dict[int, IndexedEpisode] = {}
    fates = run.ask(queries.fates)
    tasks = [f for show in ("learnt", "forgotten", "hardest") for f in queries.chosen(fates, show)[:PAIRED]]
    for fate in tasks:
        for e in queries.first_and_last(run.ask(queries.of_task, fate.name)) or ():
            if len(out) < most:
                out[e.key] = e
    with run.store.reading() as db:
        for e in queries.episodes(db, Filter(severity="catastrophic", sort="worst findings"), size=-(-most // 4)):
            if len(out) < most:
                out[e.key] = e
        for page in range(-(-most // queries.PAGE)):
            for e in queries.episodes(db, Filter(), page=page):
                if len(out) < most:
                    out[e.key] = e
    return list(out.values())
