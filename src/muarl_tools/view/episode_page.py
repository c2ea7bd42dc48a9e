"""One episode, as a conversation with what each call changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muarl.observe.progress import clock
from muarl.pages.charts import number
from muarl.pages.conversations import conversation, verdict_chips
from muarl.pages.conversations import wanted as asked_for
from muarl.pages.markup import Child, Html, join, tag
from muarl.pages.table import Cell, ShownColumn, table, to_html
from muarl.pages.words import stage_text
from muarl.report.report_audit import finding_line
from muarl.report.sections import facts
from muarl.rewards.state_changes import CannotReplay, Change, ReplayOutcome
from muarl.user_errors.errors import RULES
from muarl_tools.view import queries
from muarl_tools.view.audited import audit_list
from muarl_tools.view.episode_list import group_filter
from muarl_tools.view.group_tree import group_tree
from muarl_tools.view.layout import (
    PageAddress,
    Site,
    episode_at,
    episodes_at,
    frame,
    link,
    linked_cell,
    outcome,
    pair_at,
    signed,
    task_at,
    words,
)  # fmt: skip
from muarl_tools.view.queries import Filter, IndexedEpisode
from muarl_tools.view.runs import EpisodeDetails, Library, Run
from muarl_tools.view.token_view import token_view

CHANGES = 60
"""Differences shown in one block."""
OTHERS = 40
"""Other attempts at the task that are offered."""


def episode_page(site: Site, library: Library, run: Run, key: int, query: Mapping[str, str]) -> str | None:
    """The page; None if there is no such episode."""
    told = run.told(key, whole="whole" in query)
    if told is None:
        at = run.ask(queries.episode, key)
        return None if at is None else _unreadable(site, library, run, at)
    wanted = Filter.of(query)
    by_token = query.get("by") == "token" and told.episode.tokens is not None
    body: list[Child] = [
        _top(site, run, told, wanted),
        _tabs(site, run, told, wanted, by_token),
        None if by_token or not told.part else _part(site, run, told, wanted),
        token_view(run, told) if by_token else _talk(told),
        None if by_token else _database(told),
        group_tree(site, run, told),
        _others(site, library, run, told),
    ]
    return frame(site, library, f"{told.at.name} · {run.name}", "episodes", run, *body)


def _unreadable(site: Site, library: Library, run: Run, at: IndexedEpisode) -> str:
    """The page of an episode that is in the index, and whose row is none."""
    said = "This episode cannot be shown: its line in the run’s folder is gone, or no episode as muarl writes them."
    return frame(site, library, f"{at.name} · {run.name}", "episodes", run, tag("p", said, class_="notice"))


def _top(site: Site, run: Run, told: EpisodeDetails, wanted: Filter) -> Html:
    at, e = told.at, told.episode
    before, after = run.neighbours(wanted, at)
    ways = [
        link(site, None if before is None else episode_at(run, before, *wanted.query), "← previous", rel="prev"),
        link(site, episodes_at(run, *wanted.query), "list", rel="up"),
        link(site, None if after is None else episode_at(run, after, *wanted.query), "next →", rel="next"),
    ]
    advantage, own = run.advantage(told)
    tags = [words(w) for w in (at.intent, at.persona) if w]
    seconds = e.timings.get("total")
    pairs: list[tuple[str, Child]] = [
        ("When", stage_text(at.stage, at.step)),
        ("Task", link(site, task_at(run, at.task), at.task)),
        ("Kind", " · ".join([*tags, *([f"difficulty {at.difficulty}"] if at.difficulty else [])]) or None),
        ("Reward", number(at.reward) if at.reward is not None else "not scored"),
    ]
    if advantage is not None:
        note = "" if own else " (from the rewards of its group on file)"
        pairs.append(("Advantage", f"{signed(advantage)}{note}"))
    if at.group:
        of = link(site, episodes_at(run, *group_filter(at).query), at.group)
        pairs.append(("Group", of))
    pairs += [
        ("Turns", f"{at.turns:,}"),
        ("Tokens", _token_count(told)),
        ("Version", _versions(e.tokens.versions, e.agent) if e.tokens is not None else None),
        ("Time", clock(seconds) if seconds is not None and seconds >= 1 else None),
        ("Cost", f"${number(at.cost)}" if at.cost else None),
        ("Agent", e.agent or None),
        ("User", e.user or None),
        ("Seed", str(e.seed)),
    ]
    return join(
        tag("nav", ways, class_="pages", aria_label="In the list"),
        tag("div", tag("p", stage_text(at.stage, at.step), class_="eyebrow"), tag("h1", at.name), class_="title"),
        verdict_chips(e),
        facts(pairs),
    )


def _token_count(told: EpisodeDetails) -> str | None:
    trace, own = told.episode.tokens, told.at.tokens
    if trace is None:
        return f"{own:,} by the agent" if own else None
    return f"{own:,} by the agent of {len(trace):,}"


def _versions(versions: Sequence[int], agent: str) -> str | None:
    """The versions of the policy that sampled, counted within a training run; a checkpoint's name says it already."""
    found = sorted({v for v in versions if v >= 0})
    if not found or (found == [0] and not agent.startswith("policy")):
        return None
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _tabs(site: Site, run: Run, told: EpisodeDetails, wanted: Filter, by_token: bool) -> Html | None:
    if told.episode.tokens is None:
        return None
    talk = episode_at(run, told.at.key, *wanted.query)
    tokens = episode_at(run, told.at.key, *wanted.query, ("by", "token"))
    return tag(
        "nav",
        link(site, talk, "Conversation", aria_current=None if by_token else "page"),
        link(site, tokens, "By token", aria_current="page" if by_token else None),
        class_="tabs",
        aria_label="Views",
    )


# As a conversation.


def _part(site: Site, run: Run, told: EpisodeDetails, wanted: Filter) -> Html:
    """That only the beginning of a long episode is shown, and the way to all of it."""
    whole = episode_at(run, told.at.key, *wanted.query, ("whole", "1"))
    rest = link(site, whole, "Show all of it") if site.live else "All of it is in the run’s folder."
    text = f"This episode is long ({told.at.messages:,} messages): its beginning is shown, of texts and calls, too. "
    return tag("p", text, rest, class_="notice calm")


def _talk(told: EpisodeDetails) -> Html:
    return join(
        asked_for(told.scenario, told.gold),
        _briefing(told),
        audit_list(told.findings, len(told.episode.messages), told.recorded),
        conversation(told.episode.messages, told.gold or (), notes(told, anchors=True), told.findings),
    )


def _briefing(told: EpisodeDetails) -> Html | None:
    """Policy and tools as the agent had them: from the file, else from the task where it could be made again."""
    system, tools = told.episode.system, told.episode.tools
    if system is None and isinstance(told.replay, ReplayOutcome):
        system = told.replay.domain.policy_for(told.replay.task)
        tools = told.replay.domain.specs_for(told.replay.task)
    if system is None:
        return None
    named = [part for tool in tools or () for part in (tag("dt", tool.name), tag("dd", tool.description))]
    return tag("details", tag("summary", "Policy and tools"), tag("pre", system), tag("dl", named) if named else None)


def notes(told: EpisodeDetails, *, anchors: bool = False) -> dict[tuple[int, int], Html]:
    """What stands between the lines of a conversation: what each call changed, what the audit found, and what a user
    did wrong. ``anchors``: whether links lead to the findings, which can be once on a page."""
    out: dict[tuple[int, int], Html] = {}
    if isinstance(told.replay, ReplayOutcome):
        for call, changes in told.replay.calls.items():
            out[call] = tag("div", tag("span", "Changed", class_="label"), differences(changes), class_="diff")
    for at, turn in enumerate(told.episode.turns):
        if turn.advantage is not None:
            out[at, -1] = tag("p", f"Advantage of this turn: {signed(turn.advantage)}", class_="note")
    for at, finding in enumerate(told.findings or ()):
        place = (finding.message, -1)
        anchor = f"finding-{at + 1}" if anchors else None
        out[place] = join(out.get(place), finding_line(finding, anchor))
    errors = told.episode.tags.get("user_errors")
    for error in errors if isinstance(errors, list) else ():
        if isinstance(error, Mapping) and isinstance(error.get("turn"), int):
            rule, detail = str(error.get("rule")), str(error.get("detail"))
            text = f"The user {RULES.get(rule, rule)}: {detail}"
            place = (error["turn"], -1)
            out[place] = join(out.get(place), tag("p", text, class_="fault"))
    return out


def differences(changes: Sequence[Change], old: str = "before", new: str = "after") -> Html:
    """Values that differ, record by record."""
    rows: list[Html] = []
    last = ""
    for change in changes[:CHANGES]:
        if change.record != last:
            rows.append(tag("dt", change.record))
            last = change.record
        path = tag("span", f"{change.path}: ", class_="path") if change.path else None
        parts: list[Child] = [path]
        if change.before is not None:
            parts.append(tag("del", _short(change.before), title=old))
        if change.before is not None and change.after is not None:
            parts.append(" → ")
        if change.after is not None:
            parts.append(tag("ins", _short(change.after), title=new))
        rows.append(tag("dd", parts))
    if len(changes) > CHANGES:
        rows.append(tag("dd", f"and {len(changes) - CHANGES:,} more"))
    return tag("dl", rows)


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]} … ({len(text):,} characters)"


def _database(told: EpisodeDetails) -> Html:
    replay = told.replay
    if isinstance(replay, CannotReplay):
        why = tag("p", f"Differences are not shown. {replay}", class_="soft")
        return tag("section", tag("h2", "The database"), why, id="database")
    doubt = None
    if replay.differing:
        text = (
            f"{replay.differing} answers of the tools are other than in the episode, so these differences may not be "
            "the episode’s."
        )
        doubt = tag("p", text, class_="notice calm")
    blocks: list[Child] = [tag("h2", "The database"), doubt]
    whole = differences(replay.total) if replay.total else tag("p", "Nothing.", class_="soft")
    blocks.append(tag("div", tag("h3", "What the episode changed"), tag("div", whole, class_="diff")))
    if replay.wrong is not None:
        right = "Nothing: the database is as it should be."
        body = differences(replay.wrong, "is", "should be") if replay.wrong else tag("p", right, class_="soft")
        blocks.append(tag("div", tag("h3", "Expected vs. actual"), tag("div", body, class_="diff")))
    note = "Computed by replaying the episode’s calls on the task’s initial state."
    return tag("section", blocks, tag("p", note, class_="soft"), id="database")


# Other attempts.


def _others(site: Site, library: Library, run: Run, told: EpisodeDetails) -> Html | None:
    """Other attempts at the task, in this run and in the others, each with the way to see both."""
    blocks: list[Html] = []
    for other in library.runs:
        found = [e for e in other.ask(queries.of_task, told.at.task) if (other, e.key) != (run, told.at.key)]
        if len(found) > OTHERS:  # the first and the last ones differ most
            found = found[: OTHERS // 2] + found[-(OTHERS // 2) :]
        if not found:
            continue
        rows = []
        for e in found:
            both, stage = _ordered(library, run, told.at, other, e), stage_text(e.stage, e.step)
            row = linked_cell(site, episode_at(other, e.key), stage), Cell("", page=outcome(e)), f"{e.turns:,}"
            rows.append((*row, linked_cell(site, both, "side by side")))
        title = other.name if len(library.runs) > 1 else ""
        head = ["When", ShownColumn("Result", kind="result"), ShownColumn("Turns", right=True, label="turns"), ""]
        blocks.append(to_html(table(head, rows, title=title, kind="list others")))
    if not blocks:
        return None
    return tag("section", tag("h2", "Other attempts at this task"), blocks, id="others")


def _ordered(library: Library, run: Run, at: IndexedEpisode, other: Run, e: IndexedEpisode) -> PageAddress:
    """Both, the earlier one first."""
    if run is other:
        swap = (e.moment, e.file, e.start) < (at.moment, at.file, at.start)
    else:
        swap = library.runs.index(other) < library.runs.index(run)
    if swap:
        return pair_at(other, e.key, run, at.key)
    return pair_at(run, at.key, other, e.key)
