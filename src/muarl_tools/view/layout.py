"""What all pages share: addresses, the frame around a page, and small pieces.

A page is made the same way whether it is served or written as a file. What differs is where its links lead, which a
``Site`` knows: an address of the server, a file beside this one, or nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Protocol
from urllib.parse import quote, urlencode

from muarl.accounts.metrics import NOT_CHECKED
from muarl.observe.progress import clock
from muarl.pages.charts import percent
from muarl.pages.conversations import STOP_TEXT
from muarl.pages.markup import Child, Html, tag
from muarl.pages.table import Cell, table, to_html
from muarl.pages.templates import filled
from muarl.report.figures import link as linked
from muarl.report.sections import state
from muarl_tools.view.queries import IndexedEpisode, StageMeans
from muarl_tools.view.rows import key_text
from muarl_tools.view.runs import Library, Run

VIEW, RUNS, EPISODES, TASKS = "", "runs", "episodes", "tasks"


@dataclass(frozen=True)
class PageAddress:
    """A page: its path in parts ("runs", "mine", "tasks", "a/b") and its query."""

    parts: tuple[str, ...] = ()
    query: tuple[tuple[str, str], ...] = ()

    @property
    def address(self) -> str:
        """As the server has it; every part is quoted whole."""
        path = "/" + "/".join(quote(part, safe="") for part in self.parts)
        return f"{path}?{urlencode(self.query)}" if self.query else path


class Site(Protocol):
    """Where links lead. ``live``: there is a server behind the page, so that forms and refreshing work."""

    live: bool

    def href(self, place: PageAddress) -> str | None:
        """The address of a page as this page writes it; None if there is no such page."""
        ...

    def asset(self, name: str) -> str:
        """The address of ``view.css`` or ``view.js``."""
        ...


class ServerLinks:
    """Links to the server that serves the page."""

    live = True

    def href(self, place: PageAddress) -> str | None:
        """Every page has an address."""
        return place.address

    def asset(self, name: str) -> str:
        """Assets lie at the root."""
        return f"/{name}"


def home() -> PageAddress:
    """The overview."""
    return PageAddress()


def episodes_at(run: Run, *query: tuple[str, str]) -> PageAddress:
    """A run's list of episodes."""
    return PageAddress((RUNS, run.slug, EPISODES), tuple(query))


def episode_at(run: Run, key: int, *query: tuple[str, str]) -> PageAddress:
    """One episode."""
    return PageAddress((RUNS, run.slug, EPISODES, key_text(key)), tuple(query))


def tasks_at(run: Run, *query: tuple[str, str]) -> PageAddress:
    """A run's tasks."""
    return PageAddress((RUNS, run.slug, TASKS), tuple(query))


def task_at(run: Run, task: str) -> PageAddress:
    """One task."""
    return PageAddress((RUNS, run.slug, TASKS, task))


def pair_at(run: Run, first: int, other: Run, second: int) -> PageAddress:
    """Two episodes side by side."""
    return PageAddress(("pair", run.slug, key_text(first), other.slug, key_text(second)))


def link(site: Site, place: PageAddress | None, *children: Child, **attributes: str | None) -> Html:
    """A link, or plain text where it would lead nowhere."""
    return linked(None if place is None else site.href(place), *children, **attributes)


def linked_cell(site: Site, place: PageAddress, text: str, small: str = "") -> Cell:
    """A table's cell that leads to a page, if there is such a page."""
    return Cell(text, small=small, link=site.href(place) or "")


def stage_table(first: str, rows: Iterable[tuple[Cell, StageMeans]]) -> Html:
    """Means of episodes, a row for each stage or part of one."""
    head = (first, "Episodes", "Tasks", "Solved", "Without violation", "Turns", "Tokens", "Tool errors", "User errors",
            "Infrastructure failures")  # fmt: skip
    cells = [
        (
            name,
            f"{s.episodes:,}",
            f"{s.tasks:,}",
            percent(s.success) if s.success is not None else "–",
            clean_share(s),
            f"{s.turns:.1f}",
            f"{s.tokens:,.0f}",
            f"{s.tool_errors:.2f}",
            percent(s.user_errors),
            f"{s.excluded:,}",
        )
        for name, s in rows
    ]
    return to_html(table(head, cells, kind="stages"))


def pages_nav(site: Site, at: Callable[[int], PageAddress], page: int, last: int, ends: tuple[str, str]) -> Html:
    """The way to the other pages of a list. ``at``: a page's address. ``ends``: what leads to the page before and
    after."""
    near = sorted({0, *range(max(0, page - 2), min(last, page + 2) + 1), last})
    shown = [link(site, at(page - 1) if page else None, ends[0], rel="prev")]
    for before, n in zip([-1, *near], near, strict=False):
        if n > before + 1:
            shown.append(tag("span", "…"))
        shown.append(link(site, at(n), f"{n + 1:,}", aria_current="page" if n == page else None))
    shown.append(link(site, at(page + 1) if page < last else None, ends[1], rel="next"))
    return tag("nav", shown, class_="pages", aria_label="Pages of the list")


def frame(site: Site, library: Library, title: str, here: str, run: Run | None, *body: Child) -> str:
    """A whole page. ``here``: which entry of the navigation it belongs to; ``run``: whose. On a page of one run, the
    others are one click away."""
    runs = library.runs
    shown = run or runs[0]
    kind = TASKS if here == "tasks" else EPISODES
    return filled(
        "frame",
        "muarl_tools.view",
        site=site,
        link=link,
        policy=FILE_POLICY,
        title=title,
        home=home(),
        entries=(
            ("overview", "Overview", home()),
            ("episodes", "Episodes", episodes_at(shown)),
            ("tasks", "Tasks", tasks_at(shown)),
        ),
        here=here,
        run=run,
        others=[(r, PageAddress((RUNS, r.slug, kind))) for r in runs] if run is not None and len(runs) > 1 else [],
        state=run_state(shown) if run is not None or len(runs) == 1 else None,
        going_on=site.live and any(r.running or not r.store.progress().complete for r in runs),
        body=body,
    )


FILE_POLICY = "default-src 'none'; style-src 'self' 'unsafe-inline' file:; base-uri 'none'; form-action 'none'"
"""What a written page may do: show its own style sheet, and nothing else."""


def stylesheet() -> str:
    """The report's style sheet and this viewer's."""
    report = resources.files("muarl.report").joinpath("report.css").read_text(encoding="utf-8")
    return report + resources.files("muarl_tools.view").joinpath("view.css").read_text(encoding="utf-8")


def script() -> str:
    """The few lines of JavaScript: keys, and refreshing while a run is running."""
    return resources.files("muarl_tools.view").joinpath("view.js").read_text(encoding="utf-8")


# Pieces.


def run_state(run: Run) -> Html:
    """How a run stands."""
    return state(run.state)


def indexing(run: Run) -> Html | None:
    """What a reader must know of an index that is not complete, or that met lines which are no episodes."""
    now = run.store.progress()
    if run.problem is not None:
        return tag("p", f"The index of the episodes cannot be brought up to date: {run.problem}", class_="notice")
    if not now.complete:
        share = now.done / now.size if now.size else 0.0
        return tag("p", f"Reading the run’s episodes: {share:.0%} so far. What is read is shown.", class_="notice calm")
    if now.broken:
        return tag(
            "p", f"{now.broken:,} lines cannot be read and are left out. The first: {now.problem}", class_="notice"
        )
    return None


def outcome(at: IndexedEpisode) -> Html:
    """Solved, solved with a violation, not solved, partly, not scored."""
    if at.reward is None:
        return tag("span", "not scored", class_="chip")
    if at.solved and at.without_violation == 0:
        return tag("span", "✓ solved, with a violation", class_="chip warn")
    if at.solved:
        return tag("span", "✓ solved", class_="chip good")
    partly = f"✗ {at.reward:.2g}" if at.reward > 0 else "✗ failed"
    return tag("span", partly, class_="chip bad")


def clean_share(stage: StageMeans) -> str:
    """Success without any violation of a stage's episodes, "not checked" where nobody audited them."""
    if stage.success is None:
        return "–"
    return NOT_CHECKED if stage.without_violation is None else percent(stage.without_violation)


def stop_text(stop: str) -> str:
    """Why an episode ended, in words."""
    return next((text for reason, text in STOP_TEXT.items() if reason.value == stop), stop)


def words(text: str) -> str:
    """A tag's value as a reader says it."""
    return text.replace("_", " ")


def signed(value: float | None) -> str:
    """An advantage: +0.54, −1.20, 0."""
    if value is None:
        return "–"
    return "0" if abs(value) < 5e-4 else f"{value:+.2f}".replace("-", "−")


def ago(seconds: float) -> str:
    """A time span that has passed."""
    return f"{clock(seconds)} ago"


def options(name: str, label: str, chosen: str, found: Iterable[tuple[str, str]]) -> Html:
    """A drop-down of a filter; the empty choice is "any"."""
    values = [("", "any"), *found]
    if chosen and chosen not in {v for v, _ in values}:
        values.append((chosen, chosen))
    return tag(
        "label",
        tag("span", label),
        tag("select", [tag("option", text, value=v, selected=v == chosen) for v, text in values], name=name),
    )
