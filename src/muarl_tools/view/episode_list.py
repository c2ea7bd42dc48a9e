"""The list of a run's episodes: a filter, a page of rows, and the way to the next page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from muarl.pages.charts import number
from muarl.pages.markup import Child, Html, tag
from muarl.pages.table import Cell, ShownColumn, table, to_html
from muarl.pages.words import stage_text
from muarl.report.report_audit import rule_text
from muarl_tools.view import audit_queries, queries
from muarl_tools.view.audited import audit_chips
from muarl_tools.view.layout import (
    EPISODES,
    RUNS,
    PageAddress,
    Site,
    episode_at,
    episodes_at,
    frame,
    indexing,
    link,
    options,
    outcome,
    pages_nav,
    signed,
    stop_text,
    task_at,
    words,
)  # fmt: skip
from muarl_tools.view.queries import PAGE, RESULTS, SORTS, Filter, IndexedEpisode
from muarl_tools.view.runs import Library, Run
from muarl_tools.view.search import TextHit

DEEPEST = 100_000
"""Pages beyond this are not asked for."""
AUDITED = (("severity", "The audit found"), ("rule", "Audit rule"), ("layer", "Audit layer"))
"""What a list can be narrowed by where there are findings."""
SAID: Mapping[str, Callable[[str], str]] = {
    "stage": stage_text,
    "stop": stop_text,
    "tool": str,
    "rule": rule_text,
    "severity": lambda least: {"violation": "violation or worse", "note": "anything"}.get(least, least),
}
"""How the values of a facet are shown."""


def episode_list(site: Site, library: Library, run: Run, query: Mapping[str, str]) -> str:
    """The page."""
    wanted = Filter.of(query)
    page = _number(query.get("page", ""))
    total = run.ask(queries.count, wanted)
    if wanted.text:
        title, body = _searched(site, run, wanted, total, _number(query.get("from", "")))
    else:
        title, body = _listed(site, run, wanted, total, page)
    head = tag("div", tag("p", run.name, class_="eyebrow"), tag("h1", title), class_="title")
    form = filter_form(run, wanted) if site.live else None
    return frame(site, library, f"Episodes of {run.name}", "episodes", run, head, indexing(run), form, body)


def _number(text: str) -> int:
    return min(DEEPEST * PAGE, int(text)) if text.isdecimal() and len(text) < 9 else 0


def _episodes(n: int) -> str:
    return f"{n:,} episode{'' if n == 1 else 's'}"


def _listed(site: Site, run: Run, wanted: Filter, total: int, page: int) -> tuple[str, list[Child]]:
    last = max(0, (total - 1) // PAGE)
    page = min(page, last)
    with run.store.reading() as db:
        found = queries.episodes(db, wanted, page=page)
    pages = _pages(site, run, wanted, page, last) if total > PAGE else None
    table = episode_table(site, run, found, wanted) if found else tag("p", "No episode is like that.", class_="soft")
    return _episodes(total), [pages, table, pages]


def _searched(site: Site, run: Run, wanted: Filter, total: int, skip: int) -> tuple[str, list[Child]]:
    """A page of a search. How many there are of all is not known before all have been read, so pages only continue."""
    found = run.searched(wanted, min(skip, total))
    on = None
    if not found.complete:
        more = PageAddress((RUNS, run.slug, EPISODES), (*wanted.query, ("from", str(found.seen))))
        on = link(site, more, "Search on →", rel="next")
    read = f"Looked through {found.seen:,} of {_episodes(total)}."
    state = tag("nav", tag("span", read), on, class_="pages", aria_label="Pages of the search")
    hits = {at.key: hit for at, hit in found.found}
    none = tag("p", "No conversation has these words." if found.complete else "None so far.", class_="soft")
    table = episode_table(site, run, [at for at, _ in found.found], wanted, hits=hits) if hits else none
    so_far = "" if found.complete and not skip else " here"
    return f"{_episodes(len(hits))}{so_far} with “{wanted.text}”", [state, table, state if len(hits) > 10 else None]


def filter_form(run: Run, wanted: Filter) -> Html:
    """What the list can be narrowed by."""
    found = run.ask(queries.facets)

    def counted(name: str) -> list[tuple[str, str]]:
        say = SAID.get(name, words)
        return [(v, f"{say(v)} ({n:,})") for v, n in found[name]]

    def typed(name: str, label: str, hint: str) -> Html:
        field = tag("input", name=name, value=getattr(wanted, name), placeholder=hint, size=14, autocomplete="off")
        return tag("label", tag("span", label), field)

    first = [
        options("result", "Result", wanted.result, [(r, r) for r in RESULTS]),
        options("stage", "Stage", wanted.stage, counted("stage")),
        typed("steps", "Steps", "12 or 10-20"),
        typed("task", "Task", "part of its name"),
        *([options("domain", "Domain", wanted.domain, counted("domain"))] if found["domain"] else []),
        options("intent", "Intent", wanted.intent, counted("intent")),
        options("persona", "Persona", wanted.persona, counted("persona")),
        options("stop", "Ended by", wanted.stop, counted("stop")),
        options("tool", "Tool called", wanted.tool, counted("tool")),
        options(
            "trouble", "Trouble", wanted.trouble, [("user", "the user failed"), ("tool", "a tool answered an error")]
        ),
        *(options(name, label, getattr(wanted, name), counted(name)) for name, label in AUDITED if found[name]),
        typed("text", "Search", "in the conversation"),
        options("sort", "Sort", wanted.sort or "newest", [(s, s) for s in SORTS]),
    ]
    group = tag("input", type="hidden", name="group", value=wanted.group) if wanted.group else None
    clear = tag("a", "Clear", href=episodes_at(run).address) if wanted.query else None
    return tag(
        "form",
        first,
        group,
        tag("span", tag("button", "Show"), " ", clear, class_="go"),
        tag("p", f"Only the group {wanted.group}", class_="soft") if wanted.group else None,
        method="get",
        action=episodes_at(run).address,
        class_="filter",
        role="search",
    )


def _pages(site: Site, run: Run, wanted: Filter, page: int, last: int) -> Html:
    def at(number_: int) -> PageAddress:
        more = (("page", str(number_)),) if number_ else ()
        return PageAddress((RUNS, run.slug, EPISODES), (*wanted.query, *more))

    return pages_nav(site, at, page, last, ("←", "→") if wanted.sort else ("← Newer", "Older →"))


def episode_table(
    site: Site,
    run: Run,
    found: Iterable[IndexedEpisode],
    wanted: Filter | None = None,
    *,
    tasks: bool = True,
    hits: Mapping[int, TextHit] | None = None,
) -> Html:
    """Episodes as rows. ``wanted``: the list they are from, so that an episode's page knows its neighbours. ``tasks``:
    with the task's name and tags. ``hits``: by key what a search has found in them."""
    query = () if wanted is None else wanted.query
    rows = []
    some = list(found)
    learned, paid = any(e.advantage is not None for e in some), any(e.cost for e in some)
    with run.store.reading() as db:
        audited = audit_queries.marks(db, some)
    for e in some:
        name = stage_text(e.stage, e.step)
        about: list[Child] = []
        if tasks:
            kind = " · ".join(words(w) for w in (e.intent, e.persona) if w)
            about = [link(site, task_at(run, e.task), e.task), tag("small", kind) if kind else None]
        if hits and (hit := hits.get(e.key)):
            about.append(tag("small", f"{hit.who}: {hit.before}", tag("mark", hit.words), hit.after, class_="hit"))
        marks = [
            tag("span", f"{n} {one if n == 1 else many}", class_="chip" + grave)
            for n, one, many, grave in (
                (e.tool_errors, "tool error", "tool errors", ""),
                (e.user_errors, "user error", "user errors", " bad"),
            )
            if n
        ]
        marks += audit_chips(audited.get(e.mark, ()))
        rows.append(
            (
                Cell(name, page=link(site, episode_at(run, e.key, *query), name, class_="open")),
                Cell("", page=outcome(e)),
                *([Cell("", page=about)] if tasks else []),
                Cell("", page=[stop_text(e.stop), " ", marks]),
                f"{e.turns:,}",
                f"{e.tokens:,}",
                *([signed(e.advantage)] if learned else []),
                *([f"${number(e.cost)}"] if paid else []),
            )
        )
    figures = ["Turns", "Tokens", *(["Advantage"] if learned else []), *(["Cost"] if paid else [])]
    head = [
        "When",
        ShownColumn("Result", kind="result"),
        *([ShownColumn("Task", kind="about")] if tasks else []),
        ShownColumn("Ended", kind="stop"),
        *(ShownColumn(name, right=True, label=name.lower()) for name in figures),
    ]
    return to_html(table(head, rows, kind="list"))


def group_filter(at: IndexedEpisode) -> Filter:
    """The filter that shows an episode's group."""
    return replace(Filter(), group=at.group or "", stage=at.stage)
