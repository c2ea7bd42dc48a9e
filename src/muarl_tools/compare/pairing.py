"""What several runs share: the tasks, and where seeds tell, the attempts. What only some have is left out and named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from muarl.basics.errors import DataError
from muarl_tools.compare.attempts import PlayedTask, Results

BY_SEED, BY_TASK = "task and seed", "task"


@dataclass(frozen=True)
class Paired:
    """The outcomes that are compared. ``outcomes[run][task]``: of each trial, tasks in the same order for every run.

    ``by``: "task and seed" (trial i of one run stands beside trial i of the others) or "task". ``missing``: of each
    run, tasks that others have and it has not. ``changed``: tasks left out since the files describe them differently.
    ``unpaired``: of each run, attempts left out because another run has none of the same seed. ``clean[run][task]``: of
    each trial, whether it was a success without any violation; without the tasks where that was not checked.
    """

    runs: tuple[Results, ...]
    tasks: tuple[str, ...]
    outcomes: tuple[Mapping[str, tuple[bool, ...]], ...]
    by: str
    missing: tuple[tuple[str, ...], ...]
    changed: tuple[str, ...] = ()
    unpaired: tuple[int, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    clean: tuple[Mapping[str, tuple[bool, ...]], ...] = ()

    def trials(self, run: int) -> list[tuple[bool, ...]]:
        """The outcomes of each task's trials, tasks in order."""
        return [self.outcomes[run][task] for task in self.tasks]

    def means(self, run: int) -> list[float]:
        """Each task's share of successes."""
        return [fmean(trials) for trials in self.trials(run)]


def pair(runs: Sequence[Results], *, keep_changed: bool = False) -> Paired:
    """What the runs share. ``keep_changed``: also tasks that the files describe differently.

    DataError if they share no task, or if one has no scored attempt.
    """
    for run in runs:
        if not run.attempts:
            why = f": all {len(run.excluded)} failed outside the agent" if run.excluded else ""
            raise DataError(f"{run.path}: there is no scored attempt in it{why}")
    everything = list(dict.fromkeys(a.task for run in runs for a in run.attempts))
    shared = [task for task in everything if all(task in run.tasks for run in runs)]
    missing = tuple(tuple(t for t in everything if t not in run.tasks) for run in runs)
    if not shared:
        some = "; ".join(f"{run.name}: {min(run.tasks)}, ..." for run in runs)
        raise DataError(f"the runs have no task in common, so nothing can be compared ({some})")
    changed = _changed(runs, shared)
    if changed and not keep_changed:
        shared = [task for task in shared if task not in changed]
        if not shared:
            raise DataError(
                f"all {len(changed)} tasks that the runs share are described differently in their files, such as "
                f"{changed[0]}: these are different versions of the benchmark. Compare all the same with --keep-changed"
            )
    found = [run.by_task() for run in runs]
    partners = _by_seed(found, shared)
    by = BY_TASK if partners is None else BY_SEED
    unpaired = [0] * len(runs)
    outcomes: list[Mapping[str, tuple[bool, ...]]] = []
    clean: list[Mapping[str, tuple[bool, ...]]] = []
    for number, own in enumerate(found):
        table, checked = {}, {}
        for task in shared:
            attempts = sorted(own[task], key=lambda a: a.trial)
            if partners is not None:
                by_key = {a.key: a for a in attempts}
                unpaired[number] += len(attempts) - len(partners[task])
                attempts = [by_key[key] for key in partners[task]]
            table[task] = tuple(a.success for a in attempts)
            known = tuple(a.clean for a in attempts if a.clean is not None)
            if len(known) == len(attempts):
                checked[task] = known
        outcomes.append(table)
        clean.append(checked)
    return Paired(
        tuple(runs),
        tuple(shared),
        tuple(outcomes),
        by,
        missing,
        () if keep_changed else tuple(changed),
        tuple(unpaired),
        tuple(_warnings(runs, changed if keep_changed else ())),
        tuple(clean),
    )


def _by_seed(
    found: Sequence[Mapping[str, Sequence[PlayedTask]]], tasks: Sequence[str]
) -> dict[str, list[tuple[int | None, int | None, int]]] | None:
    """The seeds of each task that all runs have; None where they do not tell, or where a task would lose every
    attempt, or all of them more than half."""
    if len(found) < 2:
        return None
    partners, kept, all_of_them = {}, 0, 0
    for task in tasks:
        keys = [[a.key for a in own[task]] for own in found]
        if any(key[0] is None for of_run in keys for key in of_run) or any(len(set(k)) != len(k) for k in keys):
            return None
        shared = set.intersection(*map(set, keys))
        if not shared:
            return None
        partners[task] = [key for key in keys[0] if key in shared]
        kept += len(shared)
        all_of_them += max(map(len, keys))
    return partners if 2 * kept >= all_of_them else None


def _changed(runs: Sequence[Results], tasks: Sequence[str]) -> list[str]:
    """Tasks of which two files of one kind say different things."""
    out = []
    for task in tasks:
        by_kind: dict[str, set[str]] = {}
        for run in runs:
            if task in run.fingerprints:
                by_kind.setdefault(run.kind, set()).add(run.fingerprints[task])
        if any(len(told) > 1 for told in by_kind.values()):
            out.append(task)
    return out


def _warnings(runs: Sequence[Results], changed: Sequence[str]) -> list[str]:
    """What makes a difference mean something else than that one agent is better."""
    out = [f"{run.name}: {note}" for run in runs for note in run.notes]
    for what, told in (
        ("users", [run.user for run in runs]),
        ("judges", [run.judge for run in runs]),
        ("domains", [run.domain for run in runs]),
    ):
        known = list(dict.fromkeys(t for t in told if t is not None))
        if len(known) > 1:
            meaning = {
                "users": "a difference is one of agent and user together",
                "judges": "a difference may be the judges'",
                "domains": "tasks of the same name may not be the same tasks",
            }[what]
            out.append(f"The runs have different {what} ({', '.join(known)}): {meaning}.")
    if changed:
        out.append(f"{len(changed)} tasks are described differently in the files, such as {changed[0]}.")
    return out
