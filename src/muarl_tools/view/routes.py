"""From an address to a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muarl_tools.view.episode_list import episode_list
from muarl_tools.view.episode_page import episode_page
from muarl_tools.view.layout import EPISODES, RUNS, TASKS, Site
from muarl_tools.view.overview import overview
from muarl_tools.view.pair_page import pair_page
from muarl_tools.view.rows import text_key
from muarl_tools.view.runs import Library, Run
from muarl_tools.view.task_pages import task_page, tasks_page


def page_of(site: Site, library: Library, parts: Sequence[str], query: Mapping[str, str]) -> str | None:
    """The page at a path (its parts, unquoted) and query; None if there is none."""
    if not parts:
        return overview(site, library)
    if parts[0] == "pair" and len(parts) == 5:
        first, second = (_one(library, *parts[i : i + 2]) for i in (1, 3))
        return pair_page(site, library, first, second) if first is not None and second is not None else None
    run = library.run(parts[1]) if parts[0] == RUNS and len(parts) in (2, 3, 4) else None
    if run is None:
        return None
    if len(parts) == 2:
        return overview(site, library, run)
    kind, rest = parts[2], parts[3:]
    if kind == EPISODES:
        if not rest:
            return episode_list(site, library, run, query)
        key = text_key(rest[0])
        return None if key is None else episode_page(site, library, run, key, query)
    if kind == TASKS:
        return task_page(site, library, run, rest[0]) if rest else tasks_page(site, library, run, query)
    return None


def _one(library: Library, slug: str, text: str) -> tuple[Run, int] | None:
    run, key = library.run(slug), text_key(text)
    return None if run is None or key is None else (run, key)
