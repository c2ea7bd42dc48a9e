"""How many known mistakes in tasks `muarl tasks check` finds, and how many alarms are false.

    git clone https://github.com/sierra-research/tau2-bench
    python benches/tasks_check_truth.py tau2-bench/.git                        # 0.2.0 against the fixes of 1.0.0
    python benches/tasks_check_truth.py tau2-bench/.git --old v1.0.0 --new COMMIT --domain retail
    python benches/tasks_check_truth.py tau2-bench/.git --tau1                 # TAU1 against TAU2 0.2.0

Needs TAU2's data (muarl data add tau2; the databases are the same in these versions), with --tau1 TAU1's as well. The
tasks of the old version are checked. Two truths: "published", the tasks that the changelog of the new version lists as
fixed, with its kinds of mistakes; and "changed", the tasks whose scenario, gold actions or communicate_info differ in
the new version. A task is flagged where it has a finding of the level. "chance": the probability of so many hits or
more if as many tasks were flagged at random (hypergeometric). "gone": the hits with a finding that the new version no
longer has, which is the stricter count: a task may be flagged for another reason than it was fixed for.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from muarl.accounts.intervals import wilson
from muarl.domains.tasks import Task
from muarl.rewards.gold import gold_digest
from muarl_tools.checks.tasks.duplicates import _grams, _overlap
from muarl_tools.checks.tasks.fixes import fixed
from muarl_tools.checks.tasks.report import TaskReport, check_source
from muarl_tools.checks.tasks.sources import TaskSource, open_source
from muarl_worlds.tau import tau1_benchmark as tau1
from muarl_worlds.tau.tau2_benchmark.tasks import task_from_json

LEVELS = (("error",), ("error", "warning"))
Rows = Mapping[str, Mapping[str, Any]]


def main() -> None:
    """Read the arguments, check, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", help="git directory of tau2-bench")
    parser.add_argument("--old", default="v0.2.0")
    parser.add_argument("--new", default="v1.0.0")
    parser.add_argument("--domain", action="append", choices=("airline", "retail"))
    parser.add_argument("--tau1", action="store_true", help="check TAU1's tasks, against --old as their fixed version")
    parser.add_argument("--list", action="store_true", help="print every flagged and every missed task")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = []
    for domain in args.domain or ("airline", "retail"):
        found.append(of_tau1(args, domain) if args.tau1 else of_versions(args, domain))
    if args.json:
        print(json.dumps(found, indent=2))
        return
    for one in found:
        show(one, args.list)


def of_versions(args: argparse.Namespace, domain: str) -> dict[str, Any]:
    """Old tasks checked, against what the new version changed."""
    old, new = (read(args.repository, version, domain) for version in (args.old, args.new))
    with tempfile.TemporaryDirectory() as folder:
        source, report = checked(Path(folder) / "old.json", old, domain)
        _, later = checked(Path(folder) / "new.json", new, domain)
        fixed = fixes(Path(folder), source, report, new, domain)
    truths: dict[str, dict[str, str]] = {"changed": {i: "" for i in old if i in new and parts(old[i]) != parts(new[i])}}
    if listed := published(args.repository, args.new, domain):
        truths = {"published": {i: kind for i, kind in listed.items() if i in old}, **truths}
    label = f"{domain}, {args.old} against {args.new}"
    return measured(label, list(old), report, truths, later) | {"fixed": fixed}


def read(repository: str, version: str, domain: str) -> Rows:
    """The tasks of a version by id."""
    return {row["id"]: row for row in json.loads(git(repository, version, f"data/tau2/domains/{domain}/tasks.json"))}


def git(repository: str, version: str, path: str) -> str:
    """A file of a version."""
    command = ["git", "--git-dir", repository, "show", f"{version}:{path}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def parts(row: Mapping[str, Any]) -> Any:
    """What makes a task: the words of its scenario, its gold actions, what must be said."""
    instructions, criteria = row["user_scenario"]["instructions"], row["evaluation_criteria"]
    told = instructions if isinstance(instructions, str) else " ".join(str(v) for v in instructions.values() if v)
    actions = [[a["name"], a["arguments"]] for a in criteria["actions"] or ()]
    return [told.split(), actions, sorted(criteria.get("communicate_info") or ())]


def published(repository: str, version: str, domain: str) -> dict[str, str]:
    """The tasks that a version's changelog lists as fixed, with the kind of mistake; none where it has no such list."""
    text = git(repository, version, "CHANGELOG.md")
    section = re.search(rf"(?ms)^#### {domain.title()} task fixes.*?\n(.*?)(?=^###)", text)
    found: dict[str, str] = {}
    if section is None or version != "v1.0.0":
        return found
    kind = ""
    for line in section[1].splitlines():
        if heading := re.match(r"- \*\*(.+?):?\*\*", line):
            kind = heading[1].rstrip(":")
        if listed := re.match(r"\s+- Tasks? ([\d, ]+):", line):
            found.update(dict.fromkeys(re.findall(r"\d+", listed[1]), kind))
    return found


def checked(path: Path, rows: Rows, domain: str) -> tuple[TaskSource, TaskReport]:
    """Tasks and what is wrong with them."""
    path.write_text(json.dumps(list(rows.values())), encoding="utf-8")
    source = open_source(str(path), domain=f"tau2-{domain}")
    return source, check_source(source)


def fixes(folder: Path, source: TaskSource, report: TaskReport, new: Rows, domain: str) -> dict[str, int]:
    """Of the tasks whose gold end state the new version changed: how many have a proposed fix that follows from policy
    and database, and how many of the fixed ones lead to the end state of the new version."""
    rows = fixed(source, report.findings)
    counts = {"end state changed": 0, "fixed": 0, "to the published end state": 0, "fixed, end state unchanged": 0}
    for _, task in source.tasks:
        if task.id not in new:
            continue
        right = ending(source, new[task.id], domain)
        was = gold_digest(source.domain, task)
        counts["end state changed"] += was != right
        if task.id in rows:
            now = ending(source, rows[task.id], domain)
            counts["fixed" if was != right else "fixed, end state unchanged"] += now != was
            counts["to the published end state"] += was != right and now == right
    return counts


def ending(source: TaskSource, row: Mapping[str, Any], domain: str) -> str:
    """The digest of the state that a task's gold actions lead to."""
    return gold_digest(source.domain, task_from_json(row, domain))


def of_tau1(args: argparse.Namespace, domain: str) -> dict[str, Any]:
    """TAU1's test tasks checked, against the same tasks in TAU2: matched by their scenarios, changed where the gold
    writes or what must be said differ."""
    later = {i: task_from_json(row, domain) for i, row in read(args.repository, args.old, domain).items()}
    source = open_source(f"tau1-{domain}", split="test")
    kind = source.domain.kind_of
    pairs = dict(matched(list(tau1.tasks(domain, "test")), list(later.values()), kind))
    source = replace(source, splits={"test": [t for t in source.splits["test"] if t.id in pairs]})
    report = check_source(source)
    by_id = {t.id: t for _, t in source.tasks}
    changed = {i: "" for i, twin in pairs.items() if work(by_id[i], kind) != work(later[twin], kind)}
    label = f"{domain}, TAU1 against TAU2 {args.old} (gold writes or what must be said)"
    return measured(label, list(pairs), report, {"changed": changed}, None)


def matched(tasks: Sequence[Task], others: Sequence[Task], kind: Any) -> Iterator[tuple[str, str]]:
    """Each task with the one of the others whose scenario shares most 3-grams with it, at least half of them. Several
    tasks vary one scenario: of those that share nearly as much (80%) the one with the same gold writes is meant."""
    grams = {other.id: _grams(bare(other.scenario), masked=False) for other in others}
    works = {other.id: work(other, kind) for other in others}
    for task in tasks:
        own = _grams(bare(task.scenario), masked=False)
        shared = {i: _overlap(own, other) for i, other in grams.items()}
        best = max(shared, key=lambda i: shared[i])
        same = [i for i in shared if shared[i] >= 0.8 * shared[best] and works[i] == work(task, kind)]
        if shared[best] >= 0.5:
            yield task.id, max(same, key=lambda i: shared[i]) if same else best


def bare(text: str) -> str:
    """A scenario without TAU2's titles."""
    return re.sub(r"Instructions:|Domain: \w+|Reason for call:|Known info:|Unknown info:|Task instructions:", " ", text)


def work(task: Task, kind: Any) -> Any:
    """What a task's gold actions write, and what must be said."""
    writes = [[a.name, dict(a.arguments)] for a in task.actions or () if kind(a.name) == "write"]
    said = sorted(re.sub(r"(\.\d*?)0+$", r"\1", info) for info in task.communicate_info)
    return json.dumps([writes, said], sort_keys=True)


def measured(
    label: str,
    ids: Sequence[str],
    report: TaskReport,
    truths: Mapping[str, Mapping[str, str]],
    later: TaskReport | None,
) -> dict[str, Any]:
    """Recall and precision by truth and level, by kind of mistake, and by rule."""
    found: dict[str, Any] = {"label": label, "tasks": len(ids), "truths": {}}
    remaining = {(f.rule, f.where) for f in later.findings} if later is not None else set()
    for name, wrong in truths.items():
        block: dict[str, Any] = {"wrong": len(wrong), "levels": [], "kinds": {}, "rules": {}}
        for levels in LEVELS:
            flagged = {f.where for f in report.of(*levels)} & set(ids)
            hits = flagged & set(wrong)
            gone = {f.where for f in report.of(*levels) if (f.rule, f.where) not in remaining} & hits
            block["levels"].append(
                {
                    "levels": " + ".join(levels),
                    "flagged": len(flagged),
                    "hits": len(hits),
                    "gone": None if later is None else len(gone),
                    "precision": len(hits) / len(flagged) if flagged else None,
                    "precision_interval": wilson(len(hits), len(flagged)) if flagged else None,
                    "recall": len(hits) / len(wrong) if wrong else None,
                    "recall_interval": wilson(len(hits), len(wrong)) if wrong else None,
                    "false_alarms": len(flagged - set(wrong)) / max(1, len(ids) - len(wrong)),
                    "chance": chance(len(ids), len(wrong), len(flagged), len(hits)),
                    "hit": sorted(hits, key=order),
                    "false": sorted(flagged - hits, key=order),
                    "missed": sorted(set(wrong) - hits, key=order),
                }
            )
        for kind in dict.fromkeys(wrong.values()):
            own = {i for i, k in wrong.items() if k == kind}
            flags = [{f.where for f in report.of(*levels)} for levels in LEVELS]
            block["kinds"][kind] = [len(own), *(len(own & flag) for flag in flags)]
        tasks: dict[tuple[str, str], set[str]] = defaultdict(set)
        for f in report.of("error", "warning"):
            if f.where in ids:
                tasks[f.level, f.rule].add(f.where)
        for (level, rule), flagged in sorted(tasks.items()):
            hits = flagged & set(wrong)
            gone = None if later is None else len({i for i in hits if (rule, i) not in remaining})
            block["rules"][rule + f" ({level})"] = [len(flagged), len(hits), gone]
        found["truths"][name] = block
    return found


def order(task_id: str) -> tuple[int, str]:
    """Ids by their number."""
    number = re.search(r"\d+", task_id)
    return (int(number[0]) if number else 0, task_id)


def chance(total: int, wrong: int, flagged: int, hits: int) -> float:
    """The probability of at least so many hits, if as many tasks were flagged at random."""
    ways = math.comb(total, flagged)
    return sum(
        math.comb(wrong, k) * math.comb(total - wrong, flagged - k) for k in range(hits, min(wrong, flagged) + 1)
    ) / ways  # fmt: skip


def show(found: Mapping[str, Any], everything: bool) -> None:
    """Print one comparison."""
    print(f"\n{found['label']}: {found['tasks']} tasks")
    for name, block in found["truths"].items():
        print(f"  {name}: {block['wrong']} tasks")
        for row in block["levels"]:
            if row["recall"] is None or row["precision"] is None:
                print(f"    {row['levels']:<16} flagged {row['flagged']}")
                continue
            print(
                f"    {row['levels']:<16} flagged {row['flagged']:>3}, right {row['hits']:>3}: precision "
                f"{row['precision']:.2f} {interval(row['precision_interval'])}, recall {row['recall']:.2f} "
                f"{interval(row['recall_interval'])}, false alarms on {row['false_alarms']:.0%} of the others, "
                f"chance {row['chance']:.1g}{'' if row['gone'] is None else gone_too(row)}"
            )
            if everything:
                print(f"      right: {', '.join(row['hit'])}\n      false: {', '.join(row['false'])}")
                print(f"      missed: {', '.join(row['missed'])}")
        for kind, (total, *by_level) in block["kinds"].items():
            if kind:
                print(f"    {kind}: {total} tasks, found {by_level[0]} by errors, {by_level[1]} with warnings")
        for rule, (flagged, hits, gone) in block["rules"].items():
            after = "" if gone is None else f", gone in the new version on {gone} of these"
            print(f"    {rule:<36} tasks {flagged:>3}, right {hits:>3}{after}")
    if "fixed" in found:
        print("  " + ", ".join(f"{name}: {count}" for name, count in found["fixed"].items()))


def gone_too(row: Mapping[str, Any]) -> str:
    """On how many hits a finding is gone in the new version."""
    return f", on {row['gone']} of the right ones a finding is gone in the new version"


def interval(bounds: Sequence[float]) -> str:
    """A 95% interval."""
    return f"[{bounds[0]:.2f}, {bounds[1]:.2f}]"


if __name__ == "__main__":
    main()
