"""Several benchmarks in one go, and one table over them: ``muarl eval --suite paper``.

A suite is an experiment whose stages are ordinary evaluations, one for each benchmark, in a folder with ``suite.json``
and ``asked/`` (what was asked), ``summary.json`` and ``report.md`` (the table).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, takewhile
from pathlib import Path
from typing import IO, Any

import yaml

from muarl.accounts.budgets import RolloutEnd
from muarl.accounts.metrics import NOT_CHECKED
from muarl.accounts.pass_hat import with_few_tasks
from muarl.basics.errors import ConfigError, DataError
from muarl.basics.files import write_json, write_text
from muarl.basics.untrusted import read_json_object
from muarl.config.load import load_config
from muarl.config.sections import EvalConfig, RunConfig
from muarl.config.trust import remember, to_approve
from muarl.observe.headline import clean_of
from muarl.observe.rundir import without_secrets
from muarl.pages.table import ShownColumn, ShownTable, table, to_markdown
from muarl_tools.experiments.stages import Experiment, Say, Stage

MANIFEST = "suite.json"
ASKED = "asked"
"""Folder of the configuration of each benchmark."""
CRITERIA = "criteria met"
"""The measure of telecom's second line."""


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


Row = Mapping[str, Any]
"""A line of the table, with the keys of ``UNPLAYED``. Shares are between 0 and 1; None: not measured. ``pass_hat``: by
k; ``pass_hat_tasks``: of how many tasks. ``without_violation``: success without any violation, over all tasks and
trials; None: not checked."""
UNPLAYED: Row = {
    "benchmark": "", "metric": "", "score": None, "interval": None, "do_nothing": None, "pass_hat": {},
    "pass_hat_tasks": {}, "episodes": 0, "planned": 0, "cost": None, "note": "not played", "without_violation": None,
    "interval_without_violation": None,
}  # fmt: skip


def parts_of(suite: str) -> tuple[Part, ...]:
    """The benchmarks of a suite. ConfigError if there is none of that name."""
    if suite not in SUITES:
        raise ConfigError(f"--suite: there is no suite {suite!r}; there are {', '.join(SUITES)}")
    return SUITES[suite]


@dataclass(frozen=True)
class Suite:
    """A suite in its folder. ``configs``: of each benchmark, as it was asked for."""

    folder: Path
    name: str
    configs: Sequence[RunConfig]

    @classmethod
    def begun(cls, root: Path, name: str, folder: str, configs: Sequence[RunConfig]) -> Suite:
        """A new one below ``root``, in FOLDER, or FOLDER-2, ... where that is taken; what was asked is noted there."""
        names = chain([folder], (f"{folder}-{number}" for number in count(2)))
        path = next(root / one for one in names if not (root / one).exists())
        (path / ASKED).mkdir(parents=True)
        for config in configs:
            file = path / ASKED / f"{config.domain.name}.yaml"
            values = without_secrets(config.model_dump(mode="json"))
            write_text(file, yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120))
            remember(file, to_approve(config))
        write_json(path / MANIFEST, {"suite": name})
        return cls(path, name, configs)

    @classmethod
    def read(cls, folder: Path) -> Suite:
        """The suite that a folder was begun with. ConfigError names the file if it cannot be read."""
        try:
            name = str(read_json_object(folder / MANIFEST)["suite"])
        except DataError as problem:
            raise ConfigError(str(problem)) from None
        except KeyError:
            raise ConfigError(f"{folder / MANIFEST}: does not name a suite") from None
        return cls(folder, name, [load_config(folder / ASKED / f"{part.domain}.yaml") for part in parts_of(name)])

    @property
    def stages(self) -> list[Stage]:
        """The evaluations, in this order."""
        names = [config.domain.name for config in self.configs]
        here = {"runs_dir": self.folder.absolute()}
        return [Stage(n, c.model_copy(update=here | {"name": n})) for n, c in zip(names, self.configs, strict=True)]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to play."""
        return all(map(is_played, self.stages))

    def run(self, say: Say) -> list[Row]:
        """Evaluate what is not yet evaluated, one benchmark after another, and write the table after each.

        ``eval.max_cost`` and ``eval.max_tokens`` bound the suite as a whole: each benchmark gets what the others have
        left.
        """
        Experiment(self.stages, self._play, finished=is_played, go_on=self._may_go_on).run(say)
        return self.write_table()

    def _play(self, stage: Stage, say: Say, output: IO[Any] | None) -> None:
        from muarl.recipes import evaluate

        resume = stage.folder if stage.is_begun else None
        try:
            evaluate.run(stage.config.model_copy(update={"eval": self._left(stage), "resume": resume}))
        except BaseException as problem:
            problem.add_note(f"Resume the suite with: muarl eval --resume {self.folder}")
            raise
        self.write_table()

    def _may_go_on(self, stage: Stage) -> bool:
        """Whether something is left of the budget, as far as is known, for this one after those before it."""
        before = takewhile(lambda one: one.name != stage.name, self.stages)
        ends = [summary["ended"] for one in before if (summary := read_summary(one.folder)) is not None]
        return RolloutEnd.UNCOUNTED not in ends and self._left(stage) is not None

    def _left(self, stage: Stage) -> EvalConfig | None:
        """The section ``eval`` of one benchmark with what the others have left of the budget; None: nothing."""
        own, beside = stage.config.eval, [one for one in self.stages if one.name != stage.name]
        others = [summary for one in beside if (summary := read_summary(one.folder)) is not None]
        bounds: dict[str, float | int] = {}
        if own.max_cost is not None:
            bounds["max_cost"] = own.max_cost - sum(s["cost"]["total"] or 0.0 for s in others)
        if own.max_tokens is not None:
            bounds["max_tokens"] = own.max_tokens - sum(map(_tokens, others))
        return None if any(bound <= 0 for bound in bounds.values()) else own.model_copy(update=bounds)

    def write_table(self) -> list[Row]:
        """Write summary.json and report.md from what the evaluations have left; the table's lines."""
        summaries = {stage.name: read_summary(stage.folder) for stage in self.stages}
        rows = list(rows_of(self.name, summaries))
        found = [s for s in summaries.values() if s is not None]
        agents = list(dict.fromkeys(str(s["agent"]) for s in found))
        users = list(dict.fromkeys(str(s["user_eval"]) for s in found))
        trials = self.configs[0].eval.trials
        head = {"suite": self.name, "agent": agents, "users": users, "trials": trials}
        write_json(self.folder / "summary.json", head | {"rows": rows})
        facts = [f"- agent: {', '.join(agents)}", f"- users: {', '.join(users)}", f"- trials: {trials}"]
        report = [f"# Suite {self.name}", "", *facts, "", to_markdown(table_of(rows))]
        write_text(self.folder / "report.md", "\n".join(report))
        return rows


def check(configs: Sequence[RunConfig]) -> list[str]:
    """Check all of a suite's evaluations before the first begins: data, tasks, users, and the agent, with the
    checkpoint's context.

    Returns a line about each. DataError lists every benchmark whose data are missing, with the command that gets them;
    ConfigError or CheckpointError for what else does not fit. No endpoint is asked, and no weights are read.
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
    from muarl.environments.configure import places_of
    from muarl.runs.eval_agent import check_eval_agent
    from muarl.runs.prices import with_prices
    from muarl.runs.roles import Cast, check_fits
    from muarl.runs.users import check_users

    playing = with_prices(config)
    places, ev = places_of(playing, measuring=True), playing.eval
    tasks = places.eval_tasks(ev.split, ev.tasks, seed=ev.seed, ids=ev.task_ids)
    cast = Cast.of(playing)
    check_fits(cast, "agent", "eval_user", "judge")
    check_users(cast, places, {"eval_user": ev.split})
    check_eval_agent(playing, places)
    return f"{config.domain.name}: {len(tasks)} tasks x {ev.trials} trial(s), {len(tasks) * ev.trials} conversations"


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


def is_played(stage: Stage) -> bool:
    """Whether nothing is left to play of a benchmark."""
    summary = read_summary(stage.folder)
    return summary is not None and summary["ended"] == "complete"


def rows_of(suite: str, summaries: Mapping[str, Mapping[str, Any] | None]) -> Iterator[Row]:
    """The table's lines, of the benchmarks' summaries by domain; telecom has a second one for its criteria."""
    for part in parts_of(suite):
        summary, row = summaries.get(part.domain), {**UNPLAYED, "benchmark": part.label, "metric": part.metric}
        if summary is None:
            yield row
            continue
        block, whole, ended = summary["evaluation"], part.figure is None, summary["ended"]
        score = block["success"] if whole else summary["benchmark"]["figures"].get(part.figure)
        excluded, clean = sum(summary["excluded_by"].values()), clean_of(block)
        notes = {
            ended.replace("_", " "): ended != "complete",
            f"{excluded} failed and count nowhere": excluded,
            "not every category was played": score is None and ended == "complete",
            "trained on it": summary["trained_on_benchmark"],
        }
        row |= {"episodes": block["episodes"], "planned": summary["planned"], "note": ""}
        yield row | {
            "score": score,
            "interval": block["interval"] if whole else None,
            "do_nothing": summary["do_nothing"],
            "pass_hat": {k: e["value"] for k, e in block["pass_hat"].items()},
            "pass_hat_tasks": {k: e.get("n") for k, e in block["pass_hat"].items()},
            "cost": summary["cost"]["total"],
            "note": "; ".join(note for note, holds in notes.items() if holds),
            "without_violation": None if clean is None else clean.value,
            "interval_without_violation": None if clean is None else clean.interval,
        }
        if part.domain == "tau2-telecom" and summary["completion"] is not None:
            yield row | {"metric": CRITERIA, "score": summary["completion"]}


def table_of(rows: Sequence[Row]) -> ShownTable:
    """The table: scores in percent."""
    ks = sorted({k for row in rows for k in row["pass_hat"] if k != "1"}, key=int)
    scores = ["score, %", "95% interval", "without violation, %", "95% interval", *(f"pass^{k}, %" for k in ks)]
    measured = [*scores, "do nothing, %", "conversations", "dollars"]
    head: list[str | ShownColumn] = ["benchmark", "measure", *measured, ShownColumn("note")]
    lines = []
    for row in rows:
        unchecked = row["without_violation"] is None and row["score"] is not None and row["metric"] != CRITERIA
        lines.append(
            [
                row["benchmark"],
                row["metric"],
                _percent(row["score"]),
                _interval(row["interval"]),
                NOT_CHECKED if unchecked else _percent(row["without_violation"]),
                _interval(row["interval_without_violation"]),
                *(_pass_hat(row, k) for k in ks),
                _percent(row["do_nothing"]),
                " of ".join(dict.fromkeys((str(row["episodes"]), str(row["planned"])))),
                "" if row["cost"] is None else f"{row['cost']:.2f}",
                row["note"],
            ]
        )
    return table(head, lines, words=2)


def _pass_hat(row: Row, k: str) -> str:
    """pass^k, and of how many tasks where it is not of all."""
    tasks = row["pass_hat_tasks"]
    return with_few_tasks(_percent(row["pass_hat"].get(k)), tasks.get(k), tasks.get("1"))


def _interval(found: Sequence[float] | None) -> str:
    return "" if found is None else " to ".join(map(_percent, found))


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"
