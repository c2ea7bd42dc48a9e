"""Runs and evaluations of muarl as results: the episodes of a folder, or a file of episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from muarl.accounts.metrics import DOMAIN, NOISE_TAG, is_success, without_violation
from muarl.accounts.strata import strata_of
from muarl.audit.findings import read_findings
from muarl.basics.errors import DataError, MuarlError
from muarl.observe import listing, status
from muarl.observe.headline import AFTER, ALONE, BEFORE, TRAINED_ON, audit_of, clean_of, is_trained_on
from muarl.observe.rundir import RunDirectory
from muarl.types.episode import Episode, StopReason, read_episodes
from muarl_tools.compare.attempts import Excluded, PlayedTask, Results, digest

STAGES = ("eval", "eval-after", "eval-before")
"""Files of episodes that are evaluations, the one that a run stands for first."""
BLOCKS = {"eval": ALONE, "eval-after": AFTER, "eval-before": BEFORE}
"""What summary.json calls them."""
KIND = "run"
ENDS = {
    status.KILLED: "was killed",
    status.FAILED: "failed",
    status.INTERRUPTED: "was interrupted",
    status.RUNNING: "is still running",
}
"""How a run stands that has not come to its end."""


def is_run(path: Path) -> bool:
    """Whether a folder is a run of muarl."""
    return (path / "episodes").is_dir()


def read_run(path: Path) -> Results:
    """The evaluation that a run ends with. DataError if it has none."""
    return _stage(path, _stages(path)[0])


def read_stages(path: Path) -> list[Results]:
    """A run's evaluations: the one, or those before and after training, called so."""
    found = _stages(path)
    if len(found) < 2:
        return [_stage(path, found[0])]
    return [_stage(path, stage, name=stage.removeprefix("eval-")) for stage in reversed(found)]


def _stages(path: Path) -> list[str]:
    found = [stage for stage in STAGES if (path / "episodes" / f"{stage}.jsonl").is_file()]
    if not found:
        there = ", ".join(sorted(p.name for p in (path / "episodes").glob("*.jsonl"))[:5]) or "nothing"
        raise DataError(
            f"{path}: there is no evaluation in it (episodes/eval.jsonl or eval-after.jsonl; there is {there}). "
            f"Evaluate its checkpoint with muarl eval --checkpoint {path}, or name a file of episodes"
        )
    return found


def _stage(path: Path, stage: str, *, name: str | None = None) -> Results:
    run = RunDirectory.at(path)
    try:
        summary, told = run.read_json("summary"), run.read_tasks()
    except MuarlError as problem:
        raise DataError(str(problem)) from None
    prints = _digests(told)
    audited, episodes = _older_audit(path, stage, summary), run.read_episodes(stage)
    found = _results(episodes, name or path.resolve().name, str(path), summary, prints, audited)
    return replace(found, notes=_notes(path, stage, len(episodes), summary))


def read_episodes_file(path: Path) -> Results:
    """A file of episodes; what a run's summary says comes from the run that it stands in."""
    folder = path.resolve().parent.parent
    inside = path.resolve().parent.name == "episodes" and (folder / "status.json").is_file()
    try:
        episodes = list({(e.id, e.group, e.seed): e for e in read_episodes(path, unfinished_ok=True)}.values())
        summary = RunDirectory.at(folder).read_json("summary") if inside else {}
        told = RunDirectory.at(folder).read_tasks() if inside else {}
    except (ValueError, MuarlError) as problem:
        raise DataError(str(problem)) from None
    name = f"{folder.name} {path.stem}" if inside else path.stem
    prints = _digests(told)
    audited = _older_audit(folder, path.stem, summary) if inside else None
    found = _results(episodes, name, str(path), summary, prints, audited)
    return replace(found, notes=_notes(folder, path.stem, len(episodes), summary)) if inside else found


def _notes(folder: Path, stage: str, played: int, summary: Mapping[str, Any]) -> tuple[str, ...]:
    """What to know of a run that is compared."""
    trained = (f"{TRAINED_ON}.",) if is_trained_on(summary) else ()
    return (*trained, *_unfinished(folder, stage, played, summary))


def _unfinished(folder: Path, stage: str, played: int, summary: Mapping[str, Any]) -> tuple[str, ...]:
    """That a run did not come to its end, or played less than was planned: with what it has, it is compared."""
    (run,) = listing.list_runs(folder)
    # Of a run that ended, its summary alone counts: the configuration may ask for more tasks than there are.
    planned = run.planned if run.state in ENDS or type(summary.get("planned")) is int else None
    whole = planned is None or run.kind != "eval" or stage != "eval" or played >= planned
    count = f"{played} attempts" if whole else f"{played} of {planned} attempts"
    if run.state in ENDS:
        before = " Its evaluation before training is what it has." if stage == "eval-before" else ""
        return (f"it {ENDS[run.state]}: {count} are compared.{before}",)
    return () if whole else (f"{count} were played: they are compared, and the others are missing.",)


def _older_audit(folder: Path, stage: str, summary: Mapping[str, Any]) -> Callable[[Episode], bool | None] | None:
    """What the findings of a run say of its episodes, where the episodes do not say it themselves, as in runs of older
    versions: whether one was a success without any violation. None where the run's audit did not check that."""
    audit, file = audit_of(summary, BLOCKS.get(stage, "")), folder / "findings.jsonl"
    if clean_of(audit) is None or not file.is_file():
        return None
    parts = audit.get("by_domain")
    checked = {name for name, part in parts.items() if clean_of(part) is not None} if isinstance(parts, dict) else None
    broken = {
        str(where.get("episode"))
        for where, finding in read_findings(file)
        if where.get("file") == stage and finding.severity != "note" and finding.layer != "outcome"
    }

    def clean(episode: Episode) -> bool | None:
        if checked is not None and episode.tags.get(DOMAIN) not in checked:
            return None
        return is_success(episode.reward) and episode.id not in broken

    return clean


def _digests(told: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What the file says of tasks: what each user wants and which actions are right."""
    return {task: digest([row.get("scenario"), row.get("actions")]) for task, row in told.items()}


def _results(
    episodes: Sequence[Episode],
    name: str,
    path: str,
    summary: Mapping[str, Any],
    fingerprints: Mapping[str, str],
    audited: Callable[[Episode], bool | None] | None = None,
) -> Results:
    if not episodes:
        raise DataError(f"{path}: there is no finished episode in it")
    nothing = summary.get("do_nothing")
    judge = summary.get("judge")
    return Results.of(
        (_attempt(episode, audited) for episode in episodes),
        name=name,
        path=path,
        kind=KIND,
        domain=_one(e.domain for e in episodes),
        agent=_one(e.agent for e in episodes),
        user=_one(e.user for e in episodes),
        judge=judge if isinstance(judge, str) else None,
        do_nothing=float(nothing)
        if type(nothing) is not bool and isinstance(nothing, (int, float)) and 0 <= nothing <= 1
        else None,
        fingerprints=fingerprints,
    )


def _attempt(episode: Episode, audited: Callable[[Episode], bool | None] | None) -> PlayedTask | Excluded:
    trial = _trial(episode)
    noise = episode.tags.get(NOISE_TAG)
    noise = noise if isinstance(noise, Mapping) else {}
    user_seed, repeat = noise.get("user_seed"), noise.get("repeat", 0)
    user_seed = user_seed if type(user_seed) is int else None
    repeat = repeat if type(repeat) is int else 0
    if episode.stop is StopReason.INFRASTRUCTURE or episode.verdict is None:
        why = episode.error or "it was never scored"
        return Excluded(episode.task_id, trial, why, episode.seed, user_seed, repeat)
    good, clean = is_success(episode.reward), without_violation(episode)
    clean = audited(episode) if clean is None and audited is not None else clean
    strata = tuple(strata_of(episode).items())
    return PlayedTask(episode.task_id, trial, good, episode.seed, user_seed, repeat, clean, strata)


def _trial(episode: Episode) -> int:
    """The number of its request, which stands in its id."""
    number = episode.id.rpartition("#")[2]
    return int(number) if number.isdigit() and len(number) < 10 else 0


def _one(values: Iterable[str]) -> str | None:
    """What all say, or a list where they differ (agents or users by domain)."""
    told = list(dict.fromkeys(v for v in values if v))
    return ", ".join(told[:5]) or None
