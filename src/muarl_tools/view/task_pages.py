"""Tasks over training: which are hard, newly learnt or forgotten, kinds of task, and one task's attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muarl.pages.charts import Series, dumbbell, line_chart, percent
from muarl.pages.conversations import wanted
from muarl.pages.markup import Child, Html, tag
from muarl.pages.table import Cell, ShownColumn, table, to_html
from muarl.pages.words import stage_text
from muarl.report.sections import facts
from muarl_tools.view import queries
from muarl_tools.view.episode_list import episode_table
from muarl_tools.view.layout import (
    PageAddress,
    Site,
    episodes_at,
    frame,
    indexing,
    link,
    pages_nav,
    pair_at,
    task_at,
    tasks_at,
    words,
)  # fmt: skip
from muarl_tools.view.queries import Fate
from muarl_tools.view.rows import FIRST, LAST
from muarl_tools.view.runs import Library, Run

PAGE = 60
SHOWS = (
    ("kinds", "Kinds"),
    ("hardest", "Hardest"),
    ("learnt", "Newly learnt"),
    ("forgotten", "Forgotten"),
    ("all", "All"),
)
EXPLAINED = {
    "kinds": "Success by what the user wants, what the user is like, and how hard the task is. Earlier and later: the "
    "evaluations before and after training if both exist, otherwise the two halves of the recorded episodes.",
    "hardest": "Solved in fewer than half of all recorded trials, lowest success first.",
    "learnt": "Solved in at least half of the later attempts, and clearly more often than in the earlier ones.",
    "forgotten": "Solved in at least half of the earlier attempts, and clearly less often in the later ones.",
    "all": "Every task with a scored trial, by name.",
}


def tasks_page(site: Site, library: Library, run: Run, query: Mapping[str, str]) -> str:
    """The page of a run's tasks."""
    show = query.get("show", "kinds")
    show = show if show in EXPLAINED else "kinds"
    text = query.get("page", "")
    page = int(text) if text.isdecimal() and len(text) < 9 else 0
    found: list[Fate] = run.ask(queries.fates)
    counts = {key: len(queries.chosen(found, key)) for key, _ in SHOWS if key != "kinds"}
    tabs = [
        link(
            site,
            tasks_at(run, ("show", key)) if key != "kinds" else tasks_at(run),
            name,
            tag("small", f"{counts[key]:,}") if key in counts else None,
            aria_current="page" if key == show else None,
        )
        for key, name in SHOWS
    ]
    body: list[Child] = [
        tag("div", tag("p", run.name, class_="eyebrow"), tag("h1", f"{len(found):,} tasks"), class_="title"),
        indexing(run),
        tag("nav", tabs, class_="tabs", aria_label="Which tasks"),
        tag("p", EXPLAINED[show], class_="soft"),
    ]
    if show == "kinds":
        body += [_kinds(site, run, by) for by in ("domain", "intent", "persona", "difficulty")]
    else:
        some = queries.chosen(found, show)
        last = max(0, (len(some) - 1) // PAGE)
        page = min(page, last)
        part = some[page * PAGE : (page + 1) * PAGE]
        body.append(_table(site, run, part) if part else tag("p", "None.", class_="soft"))
        if last:
            body.append(_pages(site, run, show, page, last))
        if show in ("learnt", "forgotten") and all(len(f.seen) < 2 for f in found):
            hint = "Every task was seen at one moment only, so none can be learnt or forgotten: look at the kinds."
            body.append(tag("p", hint, class_="soft"))
    return frame(site, library, f"Tasks of {run.name}", "tasks", run, *body)


def _pages(site: Site, run: Run, show: str, page: int, last: int) -> Html:
    def at(n: int) -> PageAddress:
        return tasks_at(run, ("show", show), *((("page", str(n)),) if n else ()))

    return pages_nav(site, at, page, last, ("←", "→"))


def _columns(*first: str | ShownColumn) -> tuple[str | ShownColumn, ...]:
    shares = (ShownColumn(name, right=True, label=name.lower()) for name in ("Earlier", "Later", "All", "Attempts"))
    return (*first, ShownColumn("Over training", kind="strip"), *shares)


def _fared(f: Fate) -> tuple[Cell, str, str, str, str]:
    """How a task or kind of task fared: the cells that every table has."""
    early, late = (percent(share) if share is not None else "–" for share in (f.half(False), f.half(True)))
    return Cell("", page=_strip(f)), early, late, percent(f.success), f"{f.attempts:,}"


def _table(site: Site, run: Run, found: Sequence[Fate]) -> Html:
    rows = []
    for f in found:
        kind = " · ".join(words(w) for w in (f.intent, f.persona) if w)
        name = link(site, task_at(run, f.name), f.name, class_="open")
        rows.append((Cell(f.name, small=kind, page=name), *_fared(f), Cell("", page=_pair(site, run, f))))
    return to_html(table([*_columns("Task"), ""], rows, kind="list fates"))


def _pair(site: Site, run: Run, fate: Fate) -> Html | None:
    """Its first and last attempt, side by side."""
    if len(fate.seen) < 2:
        return None
    both = queries.first_and_last(run.ask(queries.of_task, fate.name))
    return None if both is None else link(site, pair_at(run, both[0].key, run, both[1].key), "first and last")


def _strip(fate: Fate) -> Html:
    """Success at each moment, as a row of blocks from pale to full."""
    seen = fate.seen
    if len(seen) > 40:  # neighbours together
        size = -(-len(seen) // 40)
        parts = [seen[i : i + size] for i in range(0, len(seen), size)]
        seen = [(p[0][0], sum(s * n for _, s, n in p) / sum(n for *_, n in p), sum(n for *_, n in p)) for p in parts]
    blocks = [
        tag("i", class_=f"q{round(share * 4)}", title=f"{_moment(moment)}: {percent(share)} of {n}")
        for moment, share, n in seen
    ]
    return tag("span", blocks, class_="blocks")


def _moment(moment: int) -> str:
    if moment == FIRST:
        return "before RL"
    return "at the end" if moment == LAST else "demonstrations" if moment < FIRST else f"step {moment:,}"


TITLES = {
    "domain": "By domain",
    "intent": "By what the user wants",
    "persona": "By what the user is like",
    "difficulty": "By difficulty",
}


def _kinds(site: Site, run: Run, by: str) -> Html | None:
    found: list[Fate] = run.ask(queries.fates, by)
    if not found:
        return None
    rows = []
    for f in sorted(found, key=lambda f: (len(f.name), f.name) if by == "difficulty" else (f.success, f.name)):
        drawn = dumbbell([(f.half(False), "before"), (f.half(True), "after")])
        place = episodes_at(run, (by, f.name)) if by != "difficulty" else None
        name = Cell(words(f.name), page=link(site, place, words(f.name)))
        rows.append((name, Cell("", page=drawn), *_fared(f)))
    head = _columns("", ShownColumn("0% to 100%", kind="t"))
    return tag("section", tag("h2", TITLES[by]), to_html(table(head, rows, kind="list fates")))


def task_page(site: Site, library: Library, run: Run, name: str) -> str | None:
    """One task: what it asks for, success over training, every attempt. None if the run has no episode of it."""
    found = run.ask(queries.of_task, name)
    if not found:
        return None
    told = run.told(found[-1].key)
    scored = [e for e in found if e.solved is not None]
    pairs: list[tuple[str, Child]] = [
        ("Kind", " · ".join(words(w) for w in (found[-1].intent, found[-1].persona) if w) or None),
        ("Difficulty", found[-1].difficulty or None),
        ("Saved attempts", f"{len(found):,}"),
        ("Solved", percent(sum(e.solved or 0 for e in scored) / len(scored)) if scored else None),
    ]
    steps: dict[int, list[int]] = {}
    for e in scored:
        if e.stage == "training" and e.step is not None:
            steps.setdefault(e.step, []).append(e.solved or 0)
    line = [(float(s), sum(v) / len(v)) for s, v in sorted(steps.items())]
    chart = line_chart("Solved in training", [Series("", line)], shares=True) if len(line) > 2 else None
    both = None
    ends = queries.first_and_last(found)
    if ends is not None:
        first, last = ends
        both = tag(
            "p",
            link(site, pair_at(run, first.key, run, last.key), "The first and the last attempt side by side"),
            f" ({stage_text(first.stage, first.step)}; {stage_text(last.stage, last.step)})",
        )
    body: list[Child] = [
        tag("div", tag("p", "Task", class_="eyebrow"), tag("h1", name), class_="title"),
        facts(pairs),
        wanted(told.scenario, told.gold, opened=(True, True)) if told is not None else None,
        tag("div", chart, class_="charts") if chart is not None else None,
        both,
        tag("section", tag("h2", "Attempts"), episode_table(site, run, found, tasks=False)),
    ]
    for other in library.runs:
        if other is not run and (theirs := other.ask(queries.of_task, name)):
            title = f"Attempts in {other.name}"
            body.append(tag("section", tag("h2", title), episode_table(site, other, theirs, tasks=False)))
    return frame(site, library, f"{name} · {run.name}", "tasks", run, *body)
