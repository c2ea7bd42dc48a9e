"""The runs in a folder, a row each: what they are, how they stand, what they came to.

Folders may come from elsewhere, and files in them may be huge or malformed: every read is bounded, of metrics.jsonl the
end alone is read, and what cannot be read is left blank.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from muarl.accounts.metrics import SUCCESS_WITHOUT_VIOLATION
from muarl.basics.errors import MuarlError
from muarl.basics.json_values import as_figure
from muarl.basics.untrusted import parse_json, read_json_object, read_yaml
from muarl.observe.headline import ShownShare, clean_in, harder_success, headline_of, is_trained_on
from muarl.observe.status import KILLED, RUNNING, process_exists, state_of
from muarl.pages.shortening import cut

STATUS_BYTES, SUMMARY_BYTES, ACCOUNT_BYTES = 64 << 10, 4 << 20, 8 << 20
TAIL_BYTES = 512 << 10
"""Of metrics.jsonl, the end that is read: some hundred steps."""
MOST_RUNS = 10_000
"""Entries of a folder that are looked at."""
WORD = 300
"""Characters of a name that are shown: nine scenarios have 180."""
FILES = ("status.json", "summary.json", "metrics.jsonl")
"""A folder with one of them is a run."""
EVALUATIONS = ("rl", "evaluation", "cold_start")
"""Blocks of summary.json with a success, the one that counts most first."""
PHASES = {"rl": "rl", "user_rl": "rl", "cold_start": "sft", "base": "base"}
"""Phases of training in metrics.jsonl, and the section of the configuration with their ``steps``; the last first."""
SYNTHESIS = "coldstart "
"""What the phases of a cold start begin with; the scenario follows."""
_DOMAIN = re.compile(r"domain/[^/]+/success")
_SEED = re.compile(r"(.+)-seed\d{1,9}")

Row = Mapping[str, Any]
Order = Literal["when", "name", "success", "cost"]


@dataclass(frozen=True)
class RunSummary:
    """One run."""

    path: str
    name: str
    kind: str
    """The command that made it, "suite", or "seeds" for an experiment of `muarl seeds`, whose runs are listed as well;
    "" where nobody knows."""
    domain: str
    state: str
    done: int | None = None
    """Training steps, or conversations of an evaluation or a cold start; None where that is not known."""
    planned: int | None = None
    """Of the same; None where that is not known."""
    success: float | None = None
    """Of the last evaluation on held-out tasks, else of the last training step (``held_out`` False)."""
    held_out: bool = False
    began: str = ""
    """ISO 8601, UTC."""
    ended: str | None = None
    """ISO 8601, UTC."""
    cost: float | None = None
    """US dollars at endpoints, None where there is no account, or a very long one."""
    by_domain: Mapping[str, float] | None = None
    """Of a run with several domains, the success in each that counts in ``success``; None for others."""
    clean_by_domain: Mapping[str, float] | None = None
    """The same without any violation, of domains where it was checked."""
    interval: tuple[float, float] | None = None
    """The 95% interval of ``success``, where a summary has it."""
    success_without_violation: float | None = None
    """Of the same evaluation or step, None where it was not checked."""
    interval_without_violation: tuple[float, float] | None = None
    """Its 95% interval, where a summary has it."""
    trained_on_benchmark: bool = False
    """The agent was trained on tasks of the benchmark that it was measured on."""
    harder_users: Mapping[str, float] | None = None
    """By level ("typical", "hard"), the success on the same tasks with such users; None where there was no such
    evaluation."""

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        return asdict(self)


ORDERS: Mapping[Order, Callable[[RunSummary], Any]] = {
    "when": lambda run: run.began,
    "name": lambda run: run.name,
    "success": lambda run: -1.0 if run.success is None else run.success,
    "cost": lambda run: -1.0 if run.cost is None else run.cost,
}


def list_runs(folder: Path, order: Order = "when") -> list[RunSummary]:
    """The runs directly in ``folder``, or the one that it is itself; newest, dearest or best first, by name from A to
    Z. What is no run is left out."""
    if _is_run(folder):
        return [_listed(folder)]
    with os.scandir(folder) as entries:
        paths = sorted(Path(e.path) for e in islice(entries, MOST_RUNS) if e.is_dir())
    runs = [_listed(path) for path in paths if _is_run(path)]
    runs = sorted([*runs, *_experiments(folder, runs)], key=ORDERS["name"])
    return runs if order == "name" else sorted(runs, key=ORDERS[order], reverse=True)


def _is_run(path: Path) -> bool:
    return any((path / name).is_file() for name in FILES)


def _listed(path: Path) -> RunSummary:
    status, summary = _json(path / "status.json", STATUS_BYTES), _json(path / "summary.json", SUMMARY_BYTES)
    config, rows = _config(path), _tail(path / "metrics.jsonl")
    kind = _kind(path, status, summary, rows)
    done, planned = _progress(kind, config, summary, rows)
    success, clean, held_out = _scores(summary, rows)
    state = _state(status, summary)
    began, ended = _times(path, status, state)
    return RunSummary(
        path=str(path),
        name=_word(path.name),
        kind=kind,
        domain=_word(next((d for d in (status.get("domain"), summary.get("domain")) if d), _domain(kind, config))),
        state=state,
        done=done,
        planned=planned,
        success=None if success is None else success.value,
        held_out=held_out,
        began=began,
        ended=ended,
        cost=_cost(path, summary),
        by_domain=_by_domain(summary, rows),
        clean_by_domain=_clean_by_domain(summary),
        interval=None if success is None else success.interval,
        success_without_violation=None if clean is None else clean.value,
        trained_on_benchmark=is_trained_on(summary),
        interval_without_violation=None if clean is None else clean.interval,
        harder_users=harder_success(summary),
    )


def _by_domain(summary: Row, rows: Sequence[Row]) -> dict[str, float] | None:
    """By domain, the success that ``_scores`` says of all."""
    parts = {_word(name): part for name, part in _section(summary, "by_domain").items() if isinstance(part, Mapping)}
    for evaluation in EVALUATIONS:
        evaluated = {name: v for name, part in parts.items() if (v := as_figure(part.get(evaluation))) is not None}
        if evaluated:
            return evaluated
    for phases in (("evaluation", "validation"), ("rl",)):
        for row in reversed([row for row in rows if row.get("phase") in phases]):
            shares = {
                _word(k.split("/")[1]): v for k in row if _DOMAIN.fullmatch(k) and (v := as_figure(row[k])) is not None
            }
            if shares:
                return shares
    return None


def _clean_by_domain(summary: Row) -> dict[str, float] | None:
    for evaluation in EVALUATIONS:
        parts = _section(_section(summary, evaluation), "by_domain")
        if parts:
            clean = {_word(name): clean_in(summary, evaluation, name) for name in parts}
            return {name: share.value for name, share in clean.items() if share is not None}
    return None


def _kind(path: Path, status: Row, summary: Row, rows: Sequence[Row]) -> str:
    """The command, as the status says it; of an older run, as its files show."""
    phases = {str(row.get("phase")) for row in rows}
    signs = (
        ("suite", (path / "suite.json").is_file()),
        ("quickstart", "demonstrator" in summary or (path / "episodes" / "eval-before.jsonl").is_file()),
        ("coldstart", (path / "dataset").is_dir() or any(p.startswith(SYNTHESIS) for p in phases)),
        ("sft-user", "fidelity" in summary),
        ("eval", "red_team" in summary or (path / "episodes" / "eval.jsonl").is_file()),
        ("train", "rl" in phases or (path / "checkpoints" / "rl").is_dir()),
        ("sft", "cold_start" in phases),
        ("base", "base" in phases),
    )
    said = status.get("command")
    return _word(said) if isinstance(said, str) and said else next((name for name, fits in signs if fits), "")


def _progress(kind: str, config: Row, summary: Row, rows: Sequence[Row]) -> tuple[int | None, int | None]:
    """What is done of what is planned: steps, else conversations."""
    if kind == "coldstart":
        counts: dict[str, int] = {}
        for row in rows:
            if (phase := str(row.get("phase"))).startswith(SYNTHESIS):
                counts[phase] = _whole(row.get("episodes")) or 0
        passed = _whole(summary.get("kept"))
        return sum(counts.values()) if passed is None else passed, _whole(_section(config, "coldstart").get("count"))
    if kind == "eval":
        done = [_whole(row.get("episodes")) for row in rows if row.get("phase") == "evaluation"]
        tasks, trials = (_whole(_section(config, "eval").get(name)) for name in ("tasks", "trials"))
        grid = _section(config, "eval").get("noise")  # it decides how often each task is played
        planned = tasks * trials if tasks is not None and trials is not None and grid is None else None
        return done[-1] if done else None, _whole(summary.get("planned")) or planned
    for phase, section in PHASES.items():
        steps = [s for r in rows if r.get("phase") == phase and (s := _whole(r.get("step"))) is not None]
        if steps:
            epochs = phase == "cold_start" and _section(config, section).get("epochs") is not None
            return steps[-1] + 1, None if epochs else _whole(_section(config, section).get("steps"))
    return None, None


def _scores(summary: Row, rows: Sequence[Row]) -> tuple[ShownShare | None, ShownShare | None, bool]:
    """Success, success without any violation, and whether they are of held-out tasks."""
    for name in EVALUATIONS:
        if (alone := as_figure(summary.get(name))) is not None:
            return ShownShare(alone), None, True
        headline = headline_of(summary, name)
        if headline.success is not None:
            return headline.success, headline.clean, True
    measured = [r for r in rows if as_figure(r.get("success")) is not None]
    held_out = [r for r in measured if r.get("phase") in ("evaluation", "validation")]
    last = [*(r for r in measured if r.get("phase") == "rl"), *held_out][-1:]
    success, clean = (_last(last, name) for name in ("success", SUCCESS_WITHOUT_VIOLATION))
    return success, clean, bool(held_out)


def _last(rows: Sequence[Row], name: str) -> ShownShare | None:
    value = as_figure(rows[-1].get(name)) if rows else None
    return None if value is None else ShownShare(value)


def _state(status: Row, summary: Row) -> str:
    """As the status says it; a run whose process is gone does not run. (An older status does not say on which machine
    the process was; it is looked for on this one.)"""
    if not isinstance(status.get("state"), str):
        return "finished" if summary else "unknown"
    state = state_of(status)
    return KILLED if state == RUNNING and "host" not in status and _gone(status.get("pid")) else _word(state)


def _gone(pid: object) -> bool:
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0:
        return False
    return not process_exists(pid)


def _times(path: Path, status: Row, state: str) -> tuple[str, str | None]:
    """When it began and ended. Of a run that was killed: when it last wrote."""
    at, seconds = _time(status.get("at")), as_figure(status.get("seconds"))
    began = _time(status.get("began"))
    if began is None and at is not None and seconds is not None and 0 <= seconds < 1e9:
        began = at - timedelta(seconds=seconds)
    changed = max((_changed(path / name) for name in FILES), default=0.0)
    last = datetime.fromtimestamp(changed, UTC)
    ended = None if state == RUNNING else last if state == KILLED else at or last
    return _iso(began or at or last), None if ended is None else _iso(ended)


def _cost(path: Path, summary: Row) -> float | None:
    """What the account of a training run adds up to, unless it is too long for a list (some ten thousand paid
    conversations since it was last summed up); of others, what the summary says."""
    account = path / "spending.jsonl"
    if account.is_file() and account.stat().st_size <= ACCOUNT_BYTES:
        costs = [as_figure(row.get("cost")) for row in _tail(account, ACCOUNT_BYTES)]
        return sum(cost or 0.0 for cost in costs)
    for name, keys in (("cost", ("total",)), ("cost", ("agent", "user", "judge")), ("usage", ("cost",))):
        parts = [v for key in keys if (v := as_figure(_section(summary, name).get(key))) is not None]
        if parts:
            return sum(parts)
    return None


def _experiments(folder: Path, runs: Sequence[RunSummary]) -> list[RunSummary]:
    """The experiments of `muarl seeds` whose page is there, each the mean over its runs."""
    groups: dict[str, list[RunSummary]] = {}
    for run in runs:
        if (match := _SEED.fullmatch(Path(run.path).name)) is not None:
            groups.setdefault(match[1], []).append(run)
    experiments = []
    for name, members in groups.items():
        page = folder / f"{name}-seeds.html"
        if not page.is_file():
            continue
        states = {run.state for run in members}
        scores = [run.success for run in members if run.success is not None]
        clean_shares = [run.success_without_violation for run in members]
        clean = [share for share in clean_shares if share is not None]
        experiments.append(
            RunSummary(
                path=str(page),
                name=_word(f"{name}-seeds"),
                kind="seeds",
                domain=members[0].domain,
                state=states.pop() if len(states) == 1 else "mixed",
                success=fmean(scores) if len(scores) == len(members) else None,
                held_out=all(run.held_out for run in members),
                began=min(run.began for run in members),
                ended=max((run.ended for run in members if run.ended), default=None),
                success_without_violation=fmean(clean) if len(clean) == len(members) else None,
                trained_on_benchmark=any(run.trained_on_benchmark for run in members),
            )
        )
    return experiments


def _json(path: Path, most: int) -> Row:
    try:
        return read_json_object(path, most=most) if path.is_file() else {}
    except (MuarlError, OSError):
        return {}


def _config(path: Path) -> Row:
    file = path / "config.yaml"
    try:
        config = read_yaml(file) if file.is_file() else {}
    except (MuarlError, OSError):
        return {}
    return config if isinstance(config, Mapping) else {}


def _tail(path: Path, most: int = TAIL_BYTES) -> list[Row]:
    """The rows at the end of a file of JSON lines; what is no row is passed over."""
    try:
        if not path.is_file():
            return []
        with open(path, "rb") as file:
            start = max(0, os.fstat(file.fileno()).st_size - most)
            file.seek(start)
            lines = file.read(most).split(b"\n")
    except OSError:
        return []
    rows: list[Row] = []
    for line in lines[1 if start else 0 :]:
        try:
            row = parse_json(line) if line.strip() else None
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _domain(kind: str, config: Row) -> str:
    """What a configuration says of where a run's conversations take place."""
    if kind == "coldstart":
        names = _section(config, "coldstart").get("scenarios")
        return ", ".join(map(str, names)) if isinstance(names, list) else ""
    if isinstance(several := config.get("domain"), list):
        return _word(", ".join(str(one.get("name")) for one in several if isinstance(one, Mapping)))
    return "" if kind == "suite" else _word(_section(config, "domain").get("name"))


def _section(data: Row, name: str) -> Row:
    section = data.get(name)
    return section if isinstance(section, Mapping) else {}


def _whole(value: Any) -> int | None:
    figure = as_figure(value)
    return None if figure is None else int(figure)


def _word(value: Any) -> str:
    """Text from a file as it may go to a terminal."""
    text = value if isinstance(value, str) else ""
    return cut("".join(c if c.isprintable() else "?" for c in text), WORD)


def _time(value: Any) -> datetime | None:
    try:
        time = datetime.fromisoformat(str(value))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
