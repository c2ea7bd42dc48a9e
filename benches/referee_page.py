"""Of benches/referee.py: the page, and the page of details."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from textwrap import wrap

from muarl.accounts.intervals import Interval
from muarl.audit.summary import AuditSummary
from muarl_tools.compare.published import PublishedGap, gap
from referee_results import Neighbours, Scored
from referee_sources import Placed, Source

ALPHA = 0.05
INTRO = """\
# Referee

Do published results hold up when muarl scores them again, and which of their ranks are more than noise?

    python benches/referee.py --tau2 tau2-bench.git --tau1 tau-bench/.git --out docs/referee.md

writes this page, and [its details](history/referee.md) (the ranks of files and of TAU2's leaderboard with their noise,
what the audit finds, the sources), from files that you have; the bench says how to get them. With `--oracle` it adds
what the originals' own code answered.

Limits: the figures are about these files, not about the models. Users, versions of the tasks and settings differ from
file to file, and many files are of branches and pull requests that were never merged.
"""
DETAILS = """\
# Referee: details

The tables behind [referee.md](../referee.md), which is the page to read first; the same bench writes both.
"""


def page(
    scored: Sequence[Scored],
    pairs: Sequence[Neighbours],
    board: Mapping[str, Sequence[Placed]],
    oracle: Sequence[tuple[str, int, int]],
) -> str:
    """The page in Markdown: the results in short, and the scores."""
    return _joined(INTRO, *_summary(scored, pairs, board), *_scores(scored), *_oracle(oracle))


def details(
    scored: Sequence[Scored],
    pairs: Sequence[Neighbours],
    missing: Sequence[tuple[Source, str]],
    board: Mapping[str, Sequence[Placed]],
    heads: Mapping[str, str],
) -> str:
    """The page of details in Markdown, for a folder beside the page: ranks, what the audit finds, sources."""
    return _joined(
        DETAILS, *_pairs(pairs), *_board(board), *_behaviour(scored), *_notes(scored), *_sources(scored, missing, heads)
    )


def _joined(*parts: str) -> str:
    return "\n".join(parts).rstrip() + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(0x2223)) for cell in row)} |"
    yield ""


def _text(words: str, *, item: bool = False) -> str:
    """A paragraph, or an item of a list, in lines of ordinary length; followed by an empty line, if it is none."""
    lines = wrap(words, 118, subsequent_indent="  " if item else "", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + ("" if item else "\n")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _interval(found: Interval) -> str:
    return f"{_percent(found[0])} to {_percent(found[1])}"


def _points(found: Interval) -> str:
    return f"{100 * found[0]:+.1f} to {100 * found[1]:+.1f}"


def _p(value: float | None) -> str:
    if value is None:
        return "not known"
    return "< 0.0001" if value < 0.0001 else f"{value:.2g}"


def _summary(
    scored: Sequence[Scored], pairs: Sequence[Neighbours], board: Mapping[str, Sequence[Placed]]
) -> Iterator[str]:
    same, rewarded = sum(s.recorded for s in scored), sum(s.rewarded for s in scored)
    gaps = [g for rows in board.values() for g in _gaps(rows)]
    like = sum(g.p is not None and g.p <= ALPHA for g in gaps)
    same_tasks = sum(g.p_same_tasks is not None and g.p_same_tasks <= ALPHA for g in gaps)
    judged = sum(s.judged for s in scored)
    idle = [s.source.name for s in scored if s.score.interval[0] <= s.nothing]
    yield "## In short\n"
    yield _text(
        f"- **Scores**: of {rewarded:,} conversations in {len(scored)} files muarl gives {same:,} the recorded reward, to "
        f"the bit. {judged or 'None'} of the rewards {'hang' if judged else 'hangs'} on a judge of words.",
        item=True,
    )
    for one in scored:
        if one.as_published is not None:
            yield _text(
                f"- **{one.source.name}**: by the task ids in the file it scores {_percent(one.as_published)}; with each "
                f"conversation at the task whose gold actions it was graded by, {_percent(one.score.value)} (published: "
                f"{_percent(one.stated)}). The score is right, and the ids are not.",
                item=True,
            )
    if idle:
        yield _text(f"- **Not above doing nothing** (by the 95% interval): {', '.join(idle)}.", item=True)
    held = sum(p.adjusted <= ALPHA for p in pairs)
    yield _text(
        f"- **Ranks of files**: of {len(pairs)} pairs of neighbours {held} can be told apart (p at most {ALPHA:g} after "
        "Holm's correction).",
        item=True,
    )
    yield _text(
        f"- **Ranks of TAU2's leaderboard**: of {len(gaps)} pairs of neighbours {like} can be told apart on other tasks "
        f"like these, and {same_tasks} on these very tasks, each pair by itself (p at most {ALPHA:g}; of as many pairs of "
        f"equals about {ALPHA * len(gaps):.0f} would be).",
        item=True,
    )
    yield ""


def _scores(scored: Sequence[Scored]) -> Iterator[str]:
    yield "## Scores\n"
    yield _text(
        "*Published* is what the submission beside the file says, or the mean of the rewards in the file. *muarl* is "
        "scored from the messages: writes are run again, and the world is compared. *As recorded*: conversations with "
        "the same reward as in the file. *Doing nothing* is what an agent earns on the same tasks that says one polite "
        "sentence, if no judge is kind. The interval (95%) draws whole tasks."
    )
    rows = []
    for one in scored:
        counts = sorted(len(t) for t in one.results.by_task().values())
        trials = str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
        rows.append(
            (
                one.source.name,
                f"{len(counts)} x {trials}",
                _percent(one.stated),
                _percent(one.score.value),
                f"{one.recorded} of {one.rewarded}",
                _percent(one.nothing),
                _interval(one.score.interval),
            )
        )
    yield from _table(
        (
            "file",
            "tasks x trials",
            "published",
            "muarl",
            "as recorded",
            "doing nothing",
            "95% interval",
        ),
        rows,
    )


def _notes(scored: Sequence[Scored]) -> Iterator[str]:
    noted = [f"- {one.source.name}: {note}." for one in scored for note in one.notes]
    for one in scored:
        hats = {k: _percent(e.value) for k, e in one.pass_hat.items() if k > 1}
        if hats:
            noted.append(f"- {one.source.name}: pass^{', '.join(map(str, hats))} is {', '.join(hats.values())}.")
    if noted:
        yield "## Notes on single files\n"
        yield from (_text(line, item=True) for line in noted)
        yield ""


def _pairs(pairs: Sequence[Neighbours]) -> Iterator[str]:
    yield "## Which ranks of these files hold\n"
    yield _text(
        "Each file beside the next one by its published score, as `muarl compare` tests them: on the tasks that both "
        "have and describe alike, McNemar's exact test (one trial) on tasks like these. *Holm* corrects for all pairs of "
        "this table. *Tasks needed*: tasks like these at which a difference as large as the measured one would be seen "
        "with a chance of 80%. A difference is one of agent and user together, wherever users differ."
    )
    rows = [
        (
            p.first, p.second, str(p.tasks), f"{100 * p.difference:+.1f}", _points(p.interval), _p(p.p), _p(p.adjusted),
            "holds" if p.adjusted <= ALPHA and p.difference > 0 else "is reversed" if p.adjusted <= ALPHA else "noise",
            "" if p.needed is None else f"{p.needed:,}",
        )
        for p in pairs
    ]  # fmt: skip
    heads = ("ahead", "behind", "tasks", "points", "95% interval", "p", "Holm", "rank", "tasks needed")
    yield from _table(heads, rows)


def _gaps(rows: Sequence[Placed]) -> list[PublishedGap]:
    return [gap(a.score, b.score) for a, b in pairwise(rows)]


def _board(board: Mapping[str, Sequence[Placed]]) -> Iterator[str]:
    yield "## Which ranks of the leaderboard hold\n"
    yield _text(
        "TAU2's leaderboard gives pass^1 to pass^4 of four trials of each task; their conversations were not at hand. "
        "pass^1 and pass^2 tell the noise exactly ([compare.md](../compare.md#how-much-for-3-points)): the interval (95%) "
        "is over tasks like these, *p, like these* that of the difference to the next row on such tasks, as of "
        "independent means, and *p, these* on these very tasks, where only trials are noise. Agents agree on which tasks "
        "are hard, which figures do not show, so the first p is larger than a paired test's. No correction for many "
        "pairs. *Tasks needed* is for the difference to the next row, with four trials."
    )
    for domain, rows in board.items():
        if not rows:
            continue
        yield f"### {domain}: {rows[0].score.tasks} tasks\n"
        gaps = [*(gap(a.score, b.score) for a, b in pairwise(rows)), None]
        cells = []
        for n, (one, told) in enumerate(zip(rows, gaps, strict=True)):
            cells.append(
                (
                    str(n + 1), one.score.name, one.user, _percent(one.score.first), _interval(one.score.interval),
                    "" if told is None else f"{100 * told.difference:.1f}",
                    "" if told is None else _p(told.p), "" if told is None else _p(told.p_same_tasks),
                    "" if told is None else "equal" if not told.difference
                    else "over 100,000" if told.tasks is None else f"{told.tasks:,}",
                )
            )  # fmt: skip
        heads = (
            "",
            "agent",
            "user",
            "pass^1",
            "95% interval",
            "to the next",
            "p, like these",
            "p, these",
            "tasks needed",
        )
        yield from _table(heads, cells)
        odd = [one.score.name for one in rows if one.whole is False]
        if odd:
            yield _text(
                f"No whole number of {4 * rows[0].score.tasks} attempts has this pass^1, so that some were left out or "
                f"repeated: {', '.join(odd)}."
            )
        alike = [
            f"{a.score.name} and {b.score.name}"
            for n, a in enumerate(rows)
            for b in rows[n + 1 :]
            if all(abs(x - y) < 0.051 for x, y in zip(a.figures, b.figures, strict=True))
        ]
        if alike:
            yield f"The same four figures, to one decimal: {'; '.join(alike)}.\n"


def _behaviour(scored: Sequence[Scored]) -> Iterator[str]:
    yield "## What operators care about\n"
    yield _text(
        "`muarl audit` over the same conversations: rules, no model ([audit.md](../audit.md)). Shares are of conversations. "
        "*Without consent*: with a write that the user had not clearly agreed to after a proposal of just that. "
        "*Needless transfer*: handed over although the task's right ending has no handover. *Forbidden write*: one that "
        "the policy does not allow in the state in which it was made. An agent that sends JSON in place of sentences, or "
        "that works without a user, is not judged in what was said."
    )
    yield _text(
        "**These are bounds, not verdicts.** When this page was first made, of 22 findings of the first kind, drawn at random from five files and read "
        "by one reader, 9 were plain, 8 debatable (the user chose among what was offered, or changed a detail in the same "
        "breath as the yes) and 5 wrong (a clear yes that the rules did not take for one). So that column is an upper "
        "bound, and the last one a lower bound. TAU2's telecom policy asks for a price to be confirmed, not for a yes to "
        "every change: there the column counts what a careful operator would ask for. Of 7 needless transfers that were "
        "read, 6 came after the user had asked for a person. Read the findings (`muarl audit FILE --out DIR`) before you "
        "rely on one."
    )
    rows = []
    for one in scored:
        total, told = max(1, one.audit.episodes), one.audit.to_json()

        def share(rule: str, audit: AuditSummary = one.audit, total: int = total) -> str:
            count = audit.rules.get(rule)
            return _percent((count.episodes if count else 0) / total)

        clean = told["success_without_violation"]
        judged = one.prose and clean is not None
        rows.append(
            (
                one.source.name,
                f"{one.audit.episodes}",
                "not judged" if not one.prose or one.alone else share("write-without-consent"),
                share("needless-transfer"),
                share("ineligible-write"),
                _percent(told["success"]["value"]),
                f"{_percent(clean['value'])} ({_interval(clean['interval'])})" if judged else "not judged",
            )
        )
    heads = (
        "file", "conversations", "without consent, at most", "needless transfer", "forbidden write", "success",
        "success without any violation, at least",
    )  # fmt: skip
    yield from _table(heads, rows)


def _oracle(found: Sequence[tuple[str, int, int]]) -> Iterator[str]:
    if not found:
        return
    yield "## What the originals' own code answers\n"
    yield "Answers of the benchmarks' own programs, recorded by running them, and how many of them muarl gives too:\n"
    yield from _table(("what", "rows", "the same"), [(what, f"{n:,}", f"{same:,}") for what, n, same in found])


def _sources(
    scored: Sequence[Scored], missing: Sequence[tuple[Source, str]], heads: Mapping[str, str]
) -> Iterator[str]:
    yield "## Sources\n"
    for name, commit in heads.items():
        yield f"- [{name}](https://github.com/{name}), newest commit {commit[:7]}"
    yield ""
    rows = [
        (s.source.name, s.source.repository, f"{s.source.commit} ({s.source.where})", f"`{s.source.path}`")
        for s in scored
    ]
    yield from _table(("file", "repository", "commit", "path"), rows)
    if missing:
        yield _text(
            "These published files were not at hand when this page was made (the copy of the repository that was used "
            "lacks large files), and nothing is said of them. The same command scores them where they "
            "are:"
        )
        yield from (f"- {source.repository}, `{source.path}`" for source, _ in missing)
        yield ""
    yield _text(
        "Not at hand either: the trajectories behind the leaderboard, which are kept outside the repository, and results "
        "of BFCL's and ACEBench's multi-turn entries (the copy of BFCL-Result that could be had ends in August 2024, "
        "before there were any). The figures were made with the files above and TAU2's data at commit a2c0247."
    )
