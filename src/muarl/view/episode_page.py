"""One episode: as a conversation with what each call changed, by token, and two side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muarl.observe.charts import number, percent
from muarl.observe.conversations import conversation, gold_list, verdict_chips
from muarl.observe.markup import Child, Html, join, table_of, tag
from muarl.observe.progress import clock
from muarl.rewards.user_errors import RULES
from muarl.view import queries
from muarl.view.audited import audit_list, finding_line
from muarl.view.episode_list import group_filter
from muarl.view.layout import (
    Place,
    Site,
    episode_at,
    episodes_at,
    facts,
    frame,
    link,
    outcome,
    pair_at,
    signed,
    stage_text,
    task_at,
    words,
)  # fmt: skip
from muarl.view.queries import Filter, Found
from muarl.view.runs import Library, Run, Told
from muarl.view.tokens import pieces
from muarl.view.worlds import CannotReplay, Change, Replayed

TOKENS = 6000
"""Tokens shown on one page."""
CHANGES = 60
"""Differences shown in one block."""
OTHERS = 40
"""Other attempts at the task that are offered."""


def episode_page(site: Site, library: Library, run: Run, key: int, query: Mapping[str, str]) -> str | None:
    """The page; None if there is no such episode."""
    told = run.told(key, whole="whole" in query)
    if told is None:
        return None
    wanted = Filter.of(query)
    by_token = query.get("by") == "token" and told.episode.tokens is not None
    body: list[Child] = [
        _top(site, run, told, wanted),
        _tabs(site, run, told, wanted, by_token),
        None if by_token or not told.part else _part(site, run, told, wanted),
        _tokens(run, told) if by_token else _talk(told),
        None if by_token else _database(told),
        _others(site, library, run, told),
    ]
    return frame(site, library, f"{told.at.name} · {run.name}", "episodes", run, *body)


def _top(site: Site, run: Run, told: Told, wanted: Filter) -> Html:
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


def _token_count(told: Told) -> str | None:
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


def _tabs(site: Site, run: Run, told: Told, wanted: Filter, by_token: bool) -> Html | None:
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


def _part(site: Site, run: Run, told: Told, wanted: Filter) -> Html:
    """That only the beginning of a long episode is shown, and the way to all of it."""
    whole = episode_at(run, told.at.key, *wanted.query, ("whole", "1"))
    rest = link(site, whole, "Show all of it") if site.live else "All of it is in the run’s folder."
    text = f"This episode is long ({told.at.messages:,} messages): its beginning is shown, of texts and calls, too. "
    return tag("p", text, rest, class_="notice calm")


def _talk(told: Told) -> Html:
    gold = told.gold
    return join(
        tag("details", tag("summary", "What the user wants"), tag("p", told.scenario, class_="scenario"))
        if told.scenario
        else None,
        tag("details", tag("summary", "Gold actions"), gold_list(gold)) if gold is not None else None,
        _briefing(told),
        audit_list(told.findings, len(told.episode.messages), told.recorded),
        conversation(told.episode.messages, gold or (), notes(told, anchors=True), told.findings),
    )


def _briefing(told: Told) -> Html | None:
    """Policy and tools as the agent had them: from the file, else from the task where it could be made again."""
    system, tools = told.episode.system, told.episode.tools
    if system is None and isinstance(told.replay, Replayed):
        system = told.replay.domain.policy_for(told.replay.task)
        tools = told.replay.domain.specs_for(told.replay.task)
    if system is None:
        return None
    named = [part for tool in tools or () for part in (tag("dt", tool.name), tag("dd", tool.description))]
    return tag("details", tag("summary", "Policy and tools"), tag("pre", system), tag("dl", named) if named else None)


def notes(told: Told, *, anchors: bool = False) -> dict[tuple[int, int], Html]:
    """What stands between the lines of a conversation: what each call changed, what the audit found, and what a user
    did wrong. ``anchors``: whether links lead to the findings, which can be once on a page."""
    out: dict[tuple[int, int], Html] = {}
    if isinstance(told.replay, Replayed):
        for call, changes in told.replay.calls.items():
            out[call] = tag("div", tag("span", "Changed", class_="label"), differences(changes), class_="diff")
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


def _database(told: Told) -> Html:
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


# By token.


def _tokens(run: Run, told: Told) -> Html:
    trace = told.episode.tokens
    assert trace is not None
    advantage, _ = run.advantage(told)
    texts = pieces(run.tokenizer, trace.ids[:TOKENS])
    out: list[Html] = []
    current: list[Child] = []
    mine = False
    for n, text in enumerate(texts):
        if trace.loss_mask[n] != mine:
            out.append(_stretch(current, mine))
            current, mine = [], trace.loss_mask[n]
        shown = text.replace("\n", "⏎\n")
        if mine:
            chance = trace.logprobs[n]
            title = f"{n}: id {trace.ids[n]}, log-probability {chance:.4g}, version {trace.versions[n]}"
            if advantage is not None:
                title += f", advantage {signed(advantage)}"
            current.append(tag("span", shown, class_=f"tok l{_level(chance)}", title=title, tabindex=0))
        else:
            # Only what was sampled is told in full; given tokens are many and say nothing but their id.
            current.append(shown if run.tokenizer is not None else f"{shown} ")
    out.append(_stretch(current, mine))
    start = next((n for n, ours in enumerate(trace.loss_mask) if ours), 0)
    if start > 40 and len(out) > 1:  # what the agent was told is long, and not what one comes to see
        out[0] = tag("details", tag("summary", f"{start:,} tokens given at first"), out[0])
    sampled = [(trace.logprobs[n], n) for n in range(len(trace)) if trace.loss_mask[n]]
    mean = sum(chance for chance, _ in sampled) / len(sampled) if sampled else 0.0
    legend = tag(
        "p",
        tag("span", "given", class_="given-key"),
        " no loss · sampled, by log-probability: ",
        [tag("span", text, class_=f"tok l{i}") for i, text in enumerate(("≥ −0.01", "−0.1", "−0.7", "−2.3", "below"))],
        class_="legend tokens-key",
    )
    said = [("Sampled", f"{len(sampled):,} of {len(trace):,}")]
    if sampled:
        said += [("Mean log-probability", f"{mean:.3f}"), ("Perplexity", f"{2.718281828**-mean:.3f}")]
    if advantage is not None:
        said.append(("Advantage of each", signed(advantage)))
    more = len(trace) - TOKENS
    missing = "The tokenizer is not available, so ids are shown instead of text." if run.tokenizer is None else None
    return join(
        facts(said),
        legend,
        tag("p", missing, class_="soft") if missing else None,
        tag("div", out, class_="tokens"),
        tag("p", f"… and {more:,} more tokens", class_="soft") if more > 0 else None,
        _rarest(texts, sampled, trace.ids),
    )


def _stretch(parts: list[Child], mine: bool) -> Html:
    return tag("span", parts, class_="mine" if mine else "given") if parts else Html("")


def _level(chance: float) -> int:
    """How likely a token was, in five steps."""
    return next((i for i, bound in enumerate((-0.01, -0.1, -0.7, -2.3)) if chance >= bound), 4)


def _rarest(texts: list[str], sampled: list[tuple[float, int]], ids: Sequence[int]) -> Html | None:
    """The tokens that the policy itself found least likely."""
    rare = [(chance, n) for chance, n in sorted(sampled)[:10] if chance < -0.1 and n < len(texts)]
    if not rare:
        return None
    rows = []
    for chance, n in rare:
        around = join(tag("span", "".join(texts[max(0, n - 8) : n]), class_="soft"), tag("b", texts[n]))
        cells = (f"{n:,}", f"{ids[n]}", f"{chance:.2f}", percent(2.718281828**chance))
        rows.append(tag("tr", tag("th", around, scope="row"), [tag("td", c, class_="n") for c in cells]))
    head = ["After", "Place", "Id", "Log-probability", "Chance"]
    return tag("section", tag("h2", "The least likely choices"), table_of(head, rows, "rare"))


# Side by side.


def _others(site: Site, library: Library, run: Run, told: Told) -> Html | None:
    """Other attempts at the task, in this run and in the others, each with the way to see both."""
    blocks: list[Html] = []
    for other in library.runs:
        found = [e for e in other.ask(queries.of_task, told.at.task) if (other, e.key) != (run, told.at.key)]
        if len(found) > OTHERS:  # the first and the last ones differ most
            found = found[: OTHERS // 2] + found[-(OTHERS // 2) :]
        if not found:
            continue
        rows = [
            tag(
                "tr",
                tag("td", outcome(e), class_="result"),
                tag("th", link(site, episode_at(other, e.key), stage_text(e.stage, e.step)), scope="row"),
                tag("td", f"{e.turns:,} turns", class_="n"),
                tag("td", link(site, _ordered(library, run, told.at, other, e), "side by side"), class_="n"),
            )
            for e in found
        ]
        name = tag("h3", other.name) if len(library.runs) > 1 else None
        blocks.append(
            tag("div", name, tag("div", tag("table", tag("tbody", rows), class_="list others"), class_="scroll"))
        )
    if not blocks:
        return None
    return tag("section", tag("h2", "Other attempts at this task"), blocks, id="others")


def _ordered(library: Library, run: Run, at: Found, other: Run, e: Found) -> Place:
    """Both, the earlier one first."""
    if run is other:
        swap = (e.moment, e.file, e.start) < (at.moment, at.file, at.start)
    else:
        swap = library.runs.index(other) < library.runs.index(run)
    if swap:
        return pair_at(other, e.key, run, at.key)
    return pair_at(run, at.key, other, e.key)


def pair_page(site: Site, library: Library, first: tuple[Run, int], second: tuple[Run, int]) -> str | None:
    """Two episodes side by side; None if either is missing."""
    sides = [(run, run.told(key)) for run, key in (first, second)]
    if any(told is None for _, told in sides):
        return None
    both = [(run, told) for run, told in sides if told is not None]
    same = _shared(both[0][1], both[1][1])
    columns = []
    for run, told in both:
        name = stage_text(told.at.stage, told.at.step)
        named = f"{run.name}, {name}" if len(library.runs) > 1 else name
        between = notes(told)
        if 0 < same < len(told.episode.messages):
            mark = tag("p", "From here on they differ.", class_="fork")
            # After the last message that both share; a tool's answer stands with the call that it answers.
            last = same - 1
            while last and told.episode.messages[last].role == "tool":
                last -= 1
            spot = (last, len(told.episode.messages[last].tool_calls) - 1)
            between[spot] = join(between.get(spot), mark)
        wrong = told.replay.wrong if isinstance(told.replay, Replayed) else None
        columns.append(
            tag(
                "div",
                tag("h2", link(site, episode_at(run, told.at.key), named)),
                verdict_chips(told.episode),
                # Always there, so that both conversations begin at one height.
                tag("div", tag("h4", "Wrong in the database"), differences(wrong, "is", "should be"), class_="diff")
                if wrong
                else tag("div"),
                conversation(told.episode.messages, told.gold or (), between),
            )
        )
    told = both[0][1]
    tasks = {t.at.task for _, t in both}
    title = told.at.task if len(tasks) == 1 else "Two episodes"
    run = first[0]
    scenario = told.scenario or both[1][1].scenario
    body: list[Child] = [
        tag("div", tag("p", "Side by side", class_="eyebrow"), tag("h1", title), class_="title"),
        tag("p", link(site, task_at(run, told.at.task), "The task and its other attempts"), rel="up"),
        tag("details", tag("summary", "What the user wants"), tag("p", scenario, class_="scenario"))
        if scenario
        else None,
        tag("details", tag("summary", "Gold actions"), gold_list(told.gold)) if told.gold is not None else None,
        tag("div", columns, class_="pair wide-pair"),
    ]
    return frame(site, library, f"{title}, side by side", "episodes", run, *body)


def _shared(first: Told, second: Told) -> int:
    """How many messages both begin with."""
    count = 0
    for a, b in zip(first.episode.messages, second.episode.messages, strict=False):
        calls = [[(c.name, dict(c.arguments)) for c in m.tool_calls] for m in (a, b)]
        if (a.role, a.content or "", calls[0]) != (b.role, b.content or "", calls[1]):
            break
        count += 1
    return count
