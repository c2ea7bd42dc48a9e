"""Several benchmarks in one go, and one table over them: ``muarl eval --suite paper``.

A suite is a folder with one ordinary evaluation for each benchmark, ``suite.json`` and ``asked/`` (what was asked),
``summary.json`` and ``report.md`` (the table). A suite that was stopped continues with the benchmark that it was at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from muarl.accounts.budgets import RolloutEnd
from muarl.accounts.metrics import NOT_CHECKED
from muarl.basics.errors import ConfigError, DataError
from muarl.basics.files import write_json, write_text
from muarl.basics.untrusted import read_json_object
from muarl.config.load import load_config
from muarl.config.sections import EvalConfig, RunConfig
from muarl.config.trust import remember, to_approve
from muarl.observe.headline import clean_of
from muarl.observe.rundir import without_secrets

MANIFEST = "suite.json"
ASKED = "asked"
"""Folder of the configuration of each benchmark."""


@dataclass(frozen=True, slots=True)
class Part:
    """One benchmark of a suite. ``domain``: its name for ``muarl eval``. ``figure``: the benchmark's own figure that is
    the score, and what it is called; None: success, the mean over tasks and trials."""

    domain: str
    label: str
    figure: str | None = None
    metric: str = "success"


TAU2 = tuple(Part(f"tau2-{name}", f"TAU2 {name}") for name in ("retail", "airline", "telecom"))
BFCL = Part("bfcl-v3", "BFCL-V3 multi-turn", "overall", "mean of the four categories")
ACE = Part("acebench-en", "ACEBench agent", "agent", "end-to-end, mean of the two categories")
TAU1 = tuple(Part(f"tau1-{name}", f"TAU1 {name}") for name in ("retail", "airline"))

SUITES: Mapping[str, tuple[Part, ...]] = {"paper": (*TAU2, BFCL, ACE), "paper-tau1": (*TAU1, *TAU2, BFCL, ACE)}
"""``paper``: the five columns of MUA-RL's table of results; ``paper-tau1``: with TAU1, which its text reports."""


CRITERIA = "criteria met"
"""The measure of telecom's second line."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. Shares are between 0 and 1; None: not measured. ``pass_hat``: by k. ``without_violation``:
    success without any violation, over all tasks and trials, with its interval; None: not checked."""

    benchmark: str
    metric: str
    score: float | None
    interval: tuple[float, float] | None
    do_nothing: float | None
    pass_hat: Mapping[str, float]
    episodes: int
    planned: int
    cost: float | None
    note: str = ""
    without_violation: float | None = None
    interval_without_violation: tuple[float, float] | None = None


def parts_of(suite: str) -> tuple[Part, ...]:
    """The benchmarks of a suite. ConfigError if there is none of that name."""
    if suite not in SUITES:
        raise ConfigError(f"--suite: there is no suite {suite!r}; there are {', '.join(SUITES)}")
    return SUITES[suite]


def new_folder(root: Path, name: str) -> Path:
    """A folder for a new suite below ``root``: NAME, or NAME-2, ... where that is taken."""
    folder, number = root / name, 2
    while folder.exists():
        folder, number = root / f"{name}-{number}", number + 1
    return folder


def begin(folder: Path, suite: str, configs: Sequence[RunConfig]) -> None:
    """Note in a new folder what was asked."""
    (folder / ASKED).mkdir(parents=True)
    for config in configs:
        file = _asked(folder, config.domain.name)
        values = without_secrets(config.model_dump(mode="json"))
        write_text(file, yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120))
        remember(file, to_approve(config))
    write_json(folder / MANIFEST, {"suite": suite})


def _asked(folder: Path, domain: str) -> Path:
    return folder / ASKED / f"{domain}.yaml"


def read(folder: Path) -> tuple[str, list[RunConfig]]:
    """The suite that a folder was begun with. ConfigError names the file if it cannot be read."""
    file = folder / MANIFEST
    try:
        suite = str(read_json_object(file)["suite"])
    except DataError as problem:
        raise ConfigError(str(problem)) from None
    except KeyError:
        raise ConfigError(f"{file}: does not name a suite") from None
    return suite, [load_config(_asked(folder, part.domain)) for part in parts_of(suite)]


def check(configs: Sequence[RunConfig]) -> list[str]:
    """Check all of a suite's evaluations before the first begins: data, tasks, users, and the checkpoint's context.

    Returns a line about each. DataError lists every benchmark whose data are missing, with the command that gets them;
    ConfigError for what else does not fit. No endpoint is asked, and no weights are read.
    """
    missing: list[str] = []
    lines = []
    for config in configs:
        try:
            lines.append(_check(config))
        except DataError as problem:
            missing.append(str(problem))
        except ConfigError as problem:
            raise ConfigError(f"{config.domain.name}: {problem}") from problem
    if missing:
        raise DataError("\n".join(dict.fromkeys(missing)))
    return lines


def _check(config: RunConfig) -> str:
    from muarl.backends.models import load_model
    from muarl.config.parts import Compute
    from muarl.environments.configure import places_of
    from muarl.runs.prices import with_prices
    from muarl.runs.roles import Cast, check_fits
    from muarl.runs.room import check_room

    playing = with_prices(config)
    places, ev = places_of(playing, measuring=True), playing.eval
    tasks = places.eval_tasks(ev.split, ev.tasks, seed=ev.seed, ids=ev.task_ids)
    check_fits(Cast.of(playing), "agent", "eval_user", "judge")
    if playing.eval.agent == "sampled":
        policy = load_model(playing.model, weights=False)
        check_room(Compute.of(playing), playing.domains, places, policy, measured=ev.split)
    trials = playing.eval.trials
    return f"{config.domain.name}: {len(tasks)} tasks x {trials} trial(s), {len(tasks) * trials} conversations"


def run(folder: Path, suite: str, configs: Sequence[RunConfig]) -> list[Row]:
    """Evaluate what is not yet evaluated, one benchmark after another, and write the table after each.

    ``eval.max_cost`` and ``eval.max_tokens`` bound the suite as a whole: each benchmark gets what the others have left.
    """
    from muarl.recipes import evaluate

    for config in configs:
        place = folder / config.domain.name
        summary = read_summary(place)
        if summary is not None and summary["ended"] == "complete":
            continue
        left = _left(folder, config.eval, [c for c in configs if c is not config])
        if left is None:
            break
        resumed = place if place.is_dir() else None
        part = {"name": config.domain.name, "runs_dir": folder.absolute(), "resume": resumed, "eval": left}
        try:
            evaluate.run(config.model_copy(update=part))
        except BaseException as problem:
            problem.add_note(f"Resume the suite with: muarl eval --resume {folder}")
            raise
        write_table(folder, suite, configs)
        if (read_summary(place) or {}).get("ended") == RolloutEnd.UNCOUNTED:  # what is left is not known
            break
    return write_table(folder, suite, configs)


def _left(folder: Path, own: EvalConfig, beside: Sequence[RunConfig]) -> Any:
    """The section ``eval`` of one benchmark with what the others have left of the budget; None: nothing."""
    others = [read_summary(folder / c.domain.name) for c in beside]
    spent = sum(s["cost"]["total"] or 0.0 for s in others if s is not None)
    tokens = sum(_tokens(s) for s in others if s is not None)
    bounds: dict[str, float | int] = {}
    if own.max_cost is not None:
        bounds["max_cost"] = own.max_cost - spent
    if own.max_tokens is not None:
        bounds["max_tokens"] = own.max_tokens - tokens
    return None if any(bound <= 0 for bound in bounds.values()) else own.model_copy(update=bounds)


def _tokens(summary: Mapping[str, Any]) -> int:
    """Tokens of all models that an evaluation has asked."""
    usage, judged = summary["usage"], summary["judge_usage"] or {}
    played = summary["evaluation"]["episodes"] + sum(summary["excluded_by"].values())
    kinds = ("prompt_tokens", "completion_tokens")
    each = sum(usage.get(f"{side}/{kind}", 0.0) for side in ("agent", "user") for kind in kinds)
    return round(played * each) + sum(int(judged.get(kind, 0)) for kind in kinds)


def read_summary(folder: Path) -> dict[str, Any] | None:
    """What an evaluation found, None where it has not ended yet."""
    try:
        return read_json_object(folder / "summary.json")
    except DataError:
        return None


def is_complete(folder: Path) -> bool:
    """Whether a suite has nothing left to play."""
    suite, _ = read(folder)
    found = [read_summary(folder / part.domain) for part in parts_of(suite)]
    return all(summary is not None and summary["ended"] == "complete" for summary in found)


def rows_of(suite: str, summaries: Mapping[str, Mapping[str, Any] | None]) -> Iterator[Row]:
    """The table's lines, of the benchmarks' summaries by domain; telecom has a second one for its criteria."""
    for part in parts_of(suite):
        summary = summaries.get(part.domain)
        if summary is None:
            yield Row(part.label, part.metric, None, None, None, {}, 0, 0, None, "not played")
            continue
        block = summary["evaluation"]
        whole = part.figure is None
        score = block["success"] if whole else summary["benchmark"]["figures"].get(part.figure)
        notes = [] if summary["ended"] == "complete" else [summary["ended"].replace("_", " ")]
        if excluded := sum(summary["excluded_by"].values()):
            notes.append(f"{excluded} failed and count nowhere")
        if score is None and summary["ended"] == "complete":
            notes.append("not every category was played")
        if summary["trained_on_benchmark"]:
            notes.append("trained on it")
        done, planned = block["episodes"], summary["planned"]
        yield Row(
            part.label,
            part.metric,
            score,
            tuple(block["interval"]) if whole else None,
            summary["do_nothing"],
            {k: e["value"] for k, e in block["pass_hat"].items()},
            done,
            planned,
            summary["cost"]["total"],
            "; ".join(notes),
            None if (clean := clean_of(block)) is None else clean.value,
            None if clean is None else clean.interval,
        )
        if part.domain == "tau2-telecom" and summary["completion"] is not None:
            yield Row(part.label, CRITERIA, summary["completion"], None, None, {}, done, planned, None)


def write_table(folder: Path, suite: str, configs: Sequence[RunConfig]) -> list[Row]:
    """Write summary.json and report.md of a suite from what its evaluations have left; the table's lines."""
    summaries: dict[str, dict[str, Any] | None] = {c.domain.name: read_summary(folder / c.domain.name) for c in configs}
    rows = list(rows_of(suite, summaries))
    found = [s for s in summaries.values() if s is not None]
    agents = dict.fromkeys(str(s["agent"]) for s in found)
    users = dict.fromkeys(str(s["user_eval"]) for s in found)
    head = {"suite": suite, "agent": list(agents), "users": list(users), "trials": configs[0].eval.trials}
    write_json(folder / "summary.json", head | {"rows": [asdict(row) for row in rows]})
    facts = [f"- agent: {', '.join(agents)}", f"- users: {', '.join(users)}", f"- trials: {head['trials']}"]
    lines = [" | ".join(cells) for cells in cells_of(rows)]
    table = [f"| {lines[0]} |", "|" + "---|" * len(cells_of(rows)[0]), *(f"| {line} |" for line in lines[1:])]
    write_text(folder / "report.md", "\n".join([f"# Suite {suite}", "", *facts, "", *table, ""]))
    return rows


def cells_of(rows: Sequence[Row]) -> list[list[str]]:
    """The table as text, its head first: scores in percent."""
    ks = sorted({k for row in rows for k in row.pass_hat if k != "1"}, key=int)
    head = [
        "benchmark",
        "measure",
        "score, %",
        "95% interval",
        "without violation, %",
        "95% interval",
        *(f"pass^{k}, %" for k in ks),
        "do nothing, %",
    ]
    out = [[*head, "conversations", "dollars", "note"]]
    for row in rows:
        interval, within = (
            "" if found is None else " to ".join(_percent(v) for v in found)
            for found in (row.interval, row.interval_without_violation)
        )
        clean = _percent(row.without_violation)
        if row.without_violation is None and row.score is not None and row.metric != CRITERIA:
            clean = NOT_CHECKED
        hats = [_percent(row.pass_hat.get(k)) for k in ks]
        played = str(row.episodes) if row.episodes == row.planned else f"{row.episodes} of {row.planned}"
        cost = "" if row.cost is None else f"{row.cost:.2f}"
        measured = [_percent(row.score), interval, clean, within, *hats, _percent(row.do_nothing)]
        out.append([row.benchmark, row.metric, *measured, played, cost, row.note])
    return out


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"
