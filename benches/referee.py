"""Results that others have published, scored again by muarl, with their noise: makes docs/referee.md and
docs/history/referee.md.

    git clone --mirror https://github.com/sierra-research/tau2-bench     # with pull requests, whose files are read
    git clone https://github.com/sierra-research/tau-bench
    muarl data add tau2 --from CHECKOUT && muarl data add tau1 --from CHECKOUT
    python benches/referee.py --tau2 tau2-bench.git --tau1 tau-bench/.git --out docs/referee.md

Files are taken from the git directories by commit and path (``FILES``), as well as all others of TAU2's own results
(data/tau2/results/final) and TAU1's (historical_trajectories) that are there. One that is not is named on the page.
Nothing of them is kept: the page has figures alone. ``--oracle DIR`` adds what the originals' own code answered
(tau2_gold_replay.jsonl and the like), where somebody has made such files.

What is read is put into TAU2's form first: simulations without a list of tasks get the installed tasks, and simulations
whose task ids contradict the gold actions that they were graded by are joined with the tasks of these actions. Both
scores are on the page.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from muarl.accounts.intervals import Estimate, mean_interval
from muarl.accounts.metrics import is_success
from muarl.accounts.pass_hat import pass_hats_of
from muarl.accounts.strata import holm
from muarl.audit.episodes import findings_in
from muarl.audit.summary import AuditSummary, note_violations
from muarl.basics.errors import MuarlError
from muarl.rewards.judge import FixedJudge
from muarl.rewards.outcome import do_nothing
from muarl_tools.auditing.conversations import ConversationReader
from muarl_tools.auditing.rules import RulesOfConversations
from muarl_tools.compare.attempts import Results
from muarl_tools.compare.comparing import Settings, compare
from muarl_tools.compare.reading import read
from muarl_tools.scoring.jobs import RecordedWorlds, jobs
from muarl_tools.scoring.verdicts import Scoring, score_all
from referee_oracle import as_the_originals
from referee_page import details, page
from referee_results import Neighbours, Scored
from referee_sources import FILES, FOLDERS, TAU1, TAU2, Repository, Source, contradicted, leaderboard, rejoined, whole


def main() -> None:
    """Read the arguments, score everything that is there, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tau2", type=Path, required=True, help="git directory of tau2-bench")
    parser.add_argument("--tau1", type=Path, help="git directory of tau-bench")
    parser.add_argument("--oracle", type=Path, help="folder of the originals' own outputs")
    parser.add_argument("--out", type=Path, required=True, help="the page; its details go into history/ beside it")
    args = parser.parse_args()
    repositories = {TAU2: Repository(TAU2, args.tau2)}
    if args.tau1 is not None:
        repositories[TAU1] = Repository(TAU1, args.tau1)
    scored, missing = score_files(repositories)
    board = leaderboard(repositories[TAU2])
    oracle = [] if args.oracle is None else list(as_the_originals(args.oracle))
    pairs, heads = neighbours(scored), {name: repository.head for name, repository in repositories.items()}
    behind = args.out.parent / "history" / args.out.name
    behind.parent.mkdir(exist_ok=True)
    behind.write_text(details(scored, pairs, missing, board, heads), encoding="utf-8")
    args.out.write_text(page(scored, pairs, board, oracle), encoding="utf-8")


def score_files(repositories: Mapping[str, Repository]) -> tuple[list[Scored], list[tuple[Source, str]]]:
    """All files that are at hand, scored; and those that are not, with the reason."""
    scored, missing = list[Scored](), list[tuple[Source, str]]()
    for source in sources(repositories):
        repository = repositories.get(source.repository)
        try:
            if repository is None:
                raise MuarlError(f"no git directory of {source.repository} was given")
            content = repository.read(source.commit, source.path)
        except MuarlError as problem:
            missing.append((source, str(problem)))
            continue
        with tempfile.TemporaryDirectory(prefix="referee-") as folder:
            scored.append(score_file(source, content, Path(folder)))
        print(f"{source.name}: {scored[-1].score.value:.4f}", flush=True)
    return scored, missing


def sources(repositories: Mapping[str, Repository]) -> Iterator[Source]:
    """The files of FILES, and all others of FOLDERS."""
    yield from FILES
    known = {(s.repository, s.path) for s in FILES}
    for repository, folder in FOLDERS:
        for path in repositories[repository].names(folder) if repository in repositories else ():
            if (repository, path) not in known:
                yield Source(Path(path).stem, "HEAD", path, None, repository, "main")


def score_file(source: Source, content: bytes, folder: Path) -> Scored:
    """One file, scored by muarl, audited, and set beside doing nothing."""
    value = json.loads(content)
    benchmark = "tau1" if source.repository == TAU1 else "tau2"
    as_published, notes = None, list[str]()
    if benchmark == "tau2":
        value, said = whole(value)
        notes += said
        wrong = contradicted(value)
        if wrong:
            before = rewards(benchmark, write(folder / "published.json", value))[0]
            as_published = mean_of([r for r in before if r["reward"] is not None])
            value, unclear = rejoined(value)
            notes.append(
                f"{len(wrong)} of its {len(value['simulations']) + unclear} simulations have a task id that the gold "
                "actions they were graded by contradict. Joined with the tasks of those actions"
                + (f"; {unclear} that fit several tasks are left out" if unclear else "")
            )
    path = write(folder / f"{source.commit}.json", value)
    rows, judged, nothing = rewards(benchmark, path)
    counted = [r for r in rows if r["reward"] is not None and not r.get("excluded")]
    if lost := len(rows) - len(counted):
        notes.append(f"{lost} of {len(rows)} conversations are not counted: infrastructure, or not to be scored")
    compared = [r for r in counted if "recorded_reward" in r]
    same = [r for r in compared if abs(r["reward"] - r["recorded_reward"]) < 1e-9]
    notes += [
        f"task {r['task_id']}: recorded {r['recorded_reward']:g}, muarl {r['reward']:g} {r['breakdown']}"
        for r in compared
        if r not in same
    ]
    tried: dict[str, list[bool]] = {}
    for r in counted:
        tried.setdefault(str(r["task_id"]), []).append(is_success(r["reward"]))
    means = [sum(t) / len(t) for t in tried.values()]
    least = min(map(len, tried.values()))
    audit, clean, prose = audited(path, counted[0]["domain"])
    given = [r["recorded_reward"] for r in compared]
    stated = sum(given) / len(given) if source.published is None else source.published / 100
    return Scored(
        source, benchmark, str(counted[0]["domain"]), len(rows), len(same), len(compared),
        Estimate(sum(means) / len(means), mean_interval(means), len(counted)),
        pass_hats_of(tried.values(), range(1, min(least, 4) + 1)), nothing, judged, stated, as_published, audit, prose,
        with_clean(read(path), counted, clean, source.name), notes,
    )  # fmt: skip


def write(path: Path, value: Any) -> Path:
    """A value as a file of JSON."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def rewards(benchmark: str, path: Path) -> tuple[list[dict[str, Any]], int, float]:
    """What muarl scores each conversation, how many hang on a judge of words, and what doing nothing earns."""
    worlds = RecordedWorlds(benchmark)
    found = list(jobs(worlds, path))
    lines, strict = (asyncio.run(score_all(found, FixedJudge(says), Scoring())) for says in (True, False))
    judged = sum(a["reward"] != b["reward"] for a, b in zip(lines, strict, strict=True))
    tasks = {job.task.id: job for job in found if job.task is not None}
    idle = [asyncio.run(idle_reward(job)) for job in tasks.values()]
    return lines, judged, sum(map(is_success, idle)) / max(1, len(idle))


async def idle_reward(job: Any) -> float:
    """What doing nothing earns, where a judge of words never agrees."""
    if job.bench == "tau1":
        from muarl_worlds.tau import tau1_benchmark

        return float(tau1_benchmark.score(job.task, job.domain.world(job.task), ()).reward)
    return float((await do_nothing(job.domain, job.task, judge=FixedJudge(False))).reward)


def mean_of(rows: Sequence[Mapping[str, Any]]) -> float:
    """The mean reward."""
    return sum(r["reward"] for r in rows) / max(1, len(rows))


def audited(path: Path, domain: str) -> tuple[AuditSummary, dict[tuple[str, int], bool], bool]:
    """What the audit finds; whether each attempt (task, number) is free of violations; and whether the agent speaks in
    sentences. Of one that sends JSON the audit can read neither proposals nor what was told, so that nothing is said of
    its attempts."""
    summary, clean, counts = AuditSummary(path.stem), dict[tuple[str, int], bool](), Counter[str]()
    spoken = objects = 0
    for one in ConversationReader(RulesOfConversations(domain)).read(path):
        findings = findings_in(one.transcript())
        summary.add(one.episode, findings, one.where, rules=one.rules)
        note_violations(one.episode, findings, one.rules)
        number = counts[one.episode.task_id]
        counts[one.episode.task_id] += 1
        if one.episode.verdict is not None and "violations" in one.episode.verdict.audit:
            clean[one.episode.task_id, number] = not one.episode.verdict.audit["violations"]
        said = [m.content for m in one.episode.messages if m.role == "assistant" and m.content]
        spoken, objects = spoken + len(said), objects + sum(map(is_object, said))
    prose = objects * 2 <= spoken
    return summary, clean if prose else {}, prose


def is_object(text: str) -> bool:
    """Whether a message is a JSON object rather than words."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def with_clean(
    found: Results, rows: Sequence[Mapping[str, Any]], clean: Mapping[tuple[str, int], bool], name: str
) -> Results:
    """The attempts of a file with muarl's score, and whether the audit found a violation."""
    scores, counts = dict[tuple[str, int], bool](), Counter[str]()
    for row in rows:
        task = f"test/{row['task_id']}" if found.kind == "tau1" else str(row["task_id"])
        scores[task, row["trial"] if row.get("trial") is not None else counts[task]] = is_success(row["reward"])
        counts[task] += 1
    attempts, numbers = [], Counter[str]()
    for a in found.attempts:
        good = scores.get((a.task, a.trial), a.success)
        free = clean.get((a.task.removeprefix("test/"), numbers[a.task]))
        numbers[a.task] += 1
        attempts.append(replace(a, success=good, clean=None if free is None else good and free))
    return replace(found, attempts=tuple(attempts), name=name)


def neighbours(scored: Sequence[Scored]) -> list[Neighbours]:
    """Each result beside the next one of the same benchmark, domain and size of task set, on the tasks that both share
    and describe alike."""
    pairs = []
    for domain in dict.fromkeys((s.benchmark, s.domain, _kind(s)) for s in scored):
        row = sorted((s for s in scored if (s.benchmark, s.domain, _kind(s)) == domain), key=lambda s: -s.stated)
        pairs += pairwise(row)
    found = []
    for a, b in pairs:
        told = compare([a.results, b.results], Settings())
        pair = told.pairs[0]
        sign = 1 if told.names[pair.first] == a.source.name else -1
        low, high = sorted(sign * x for x in pair.interval)
        wanted = None
        if pair.difference:
            far = compare([a.results, b.results], Settings(difference=min(0.99, abs(pair.difference))))
            wanted = far.pairs[0].needed.tasks
        found.append((a, b, len(told.tasks), sign * pair.difference, (low, high), pair.p, wanted))
    adjusted = holm([f[5] for f in found])
    return [
        Neighbours(a.source.name, b.source.name, n, d, i, p, q, w)
        for (a, b, n, d, i, p, w), q in zip(found, adjusted, strict=True)
    ]


def _kind(one: Scored) -> str:
    """Which tasks it is about: a test half, all, or few; and whether the agent worked alone."""
    tasks = len(one.results.tasks)
    return f"{'alone ' if one.alone else ''}{'all' if tasks >= 44 else tasks}"


if __name__ == "__main__":
    main()
