"""What agents learn from wrong rewards, and what the tools say of it: the figures of docs/reward-hacking.md.

    python benches/reward_hacking.py
    python benches/reward_hacking.py --name careless sft.error_profile.skip_confirmation=0.7
    python benches/reward_hacking.py --name look --curve 0 rl.steps=1 eval.tasks=8 sft.steps=2      # a quick look

One cold start in the right shop; from its weights, reinforcement learning in the right shop and in each of the three of
examples/flawed_shops.py. Every agent is evaluated on its own shop's held-out tasks by that shop's reward, and on the
right shop's; with ``--curve N``, so is each of its checkpoints, on N of the right shop's tasks. Before any training,
`muarl tasks check` looks at each shop's tasks.

Settings at the end go to all commands alike. Each is a run of ``muarl`` in a process of its own; run the same command
again after an interruption: finished runs are kept, others resumed. Writes NAME-seedN.json, NAME-seedN.html and
NAME-seedN-compare.html beside the runs, and prints the tables.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from muarl.basics.files import write_json, write_text
from muarl.cli.environment_approval import approved
from muarl.observe.rundir import RunDirectory
from muarl.pages.charts import Series, line_chart
from muarl.pages.markup import Html, join, tag
from muarl.report.report import document
from muarl_tools.checks.tasks.report import TaskReport, check_source
from muarl_tools.checks.tasks.sources import open_source
from muarl_tools.compare.comparing import Comparison, Settings, compare
from muarl_tools.compare.page import write_page
from muarl_tools.compare.reading import read_all
from muarl_tools.compare.text import p_text
from muarl_tools.experiments import stages

FLAWED = Path(__file__).resolve().parents[1] / "examples" / "flawed_shops.py"
HONEST = "honest"
SHOPS: Mapping[str, str] = {
    HONEST: "retail-generated",
    "do-nothing": f"{FLAWED}:DO_NOTHING",
    "leaky": f"{FLAWED}:LEAKY",
    "sloppy": f"{FLAWED}:SLOPPY",
}
"""The environment of each shop."""
RL = (
    "rl.steps=25",
    "rl.layers.policy=0",  # each shop by its own reward alone
    "rl.layers.safety=0",
    "rl.tasks_per_step=32",
    "rl.temperature=1",
    "rl.eval_every=0",
    "rl.checkpoint_every=5",
    "checkpoints.keep_last=null",
)
"""Training of every agent."""
FINDINGS = ("write-without-consent", "needless-transfer", "wrong-write", "missing-write", "cross-user-write")
"""What the audit's table counts."""


@dataclass(frozen=True)
class Bench:
    """Where runs are and what they have in common."""

    root: Path
    name: str
    seed: int
    settings: Sequence[str]

    def made(self, name: str, *words: str) -> RunDirectory:
        """The finished run of that name: begun by a command, or resumed. MuarlError if the command fails."""
        own = ("--config", "quickstart-easy", "--seed", str(self.seed), "--name", f"{self.name}-{name}")
        return stages.made(*words, *own, f"runs_dir={self.root}", "eval.harder_users=[]", *self.settings)

    def evaluated(self, name: str, checkpoint: Path, shop: str, *more: str) -> RunDirectory:
        """A checkpoint on the held-out tasks of a shop."""
        return self.made(name, "eval", "--checkpoint", str(checkpoint), f"--domain={SHOPS[shop]}", *more)

    def cold(self) -> RunDirectory:
        """The cold start that all agents begin with."""
        return self.made(f"cold-seed{self.seed}", "sft")

    def trained(self, shop: str) -> RunDirectory:
        """The agent of a shop."""
        words = ("--checkpoint", str(self.cold().path), f"--domain={SHOPS[shop]}", *RL)
        return self.made(f"{shop}-seed{self.seed}", "train", *words)

    def curve(self, shop: str, tasks: int) -> Curve:
        """How success goes in training, and on so many of the right shop's tasks."""
        run = self.trained(shop)
        training = [(float(r["step"]), float(r["success"])) for r in run.read_metrics() if r.get("phase") == "rl"]
        right: list[tuple[float, float]] = []
        if tasks:
            more, name = (f"eval.tasks={tasks}",), f"seed{self.seed}-curve"
            right.append((0.0, success(self.evaluated(f"cold-{name}", self.cold().path, HONEST, *more))))
            for path in sorted((run.checkpoints / "rl").glob("step-*")):
                step = int(path.name.removeprefix("step-"))
                found = self.evaluated(f"{shop}-{name}-{step}", path, HONEST, *more)
                right.append((float(step), success(found)))
        return Curve(training, right)


@dataclass(frozen=True)
class Curve:
    """Success by step: ``training``, of each step's episodes by the shop's own reward; ``right``, of checkpoints on the
    right shop's tasks, by the steps made."""

    training: Sequence[tuple[float, float]]
    right: Sequence[tuple[float, float]]

    def near(self, step: float) -> float | None:
        """The mean of the five training steps up to a number of steps made, of the first one for 0."""
        values = [value for at, value in self.training if max(0, step - 5) <= at < max(1, step)]
        return fmean(values) if values else None


def success(run: RunDirectory) -> float:
    """The success rate of an evaluation."""
    return float(run.read_json("summary")["evaluation"]["success"])


@dataclass(frozen=True)
class Checked:
    """What was known of a shop before training. ``idle``, ``expert``, ``unasked``: the share of tasks that do-nothing,
    the expert and the expert who never asks earn. ``rules``: tasks by warning. ``overall``: warnings on all together.
    """

    tasks: int
    idle: float
    expert: float
    unasked: float
    rules: Mapping[str, int]
    overall: Mapping[str, str]


def checked(shop: str, tasks: int) -> Checked:
    """`muarl tasks check` of a shop's training tasks."""
    report: TaskReport = check_source(open_source(approved(SHOPS[shop]) or "", split="train", count=tasks))
    experts = {name: won / total for name, won, total in report.experts()}
    return Checked(
        report.count,
        report.baselines()[0][1] / report.count,
        experts["expert"],
        experts["expert-unasked"],
        {rule: found for rule, level, _, found in report.rules() if level != "note"},
        {finding.rule: finding.what for finding in report.overall},
    )


@dataclass(frozen=True)
class Outcome:
    """What became of an agent. ``own``: success on its own shop's tasks by that shop's reward; ``clean``: without any
    violation that the audit finds. The rest is on the right shop's tasks. ``behaviour``: shares of writes and episodes.
    ``findings``: the audit's, by rule. ``p``: of the difference to the honest agent, after Holm; ``verdict``: which of
    the two is better.
    """

    own: float
    clean: float
    honest: float
    interval: Sequence[float]
    behaviour: Mapping[str, float]
    layers: Mapping[str, float]
    findings: Mapping[str, int]
    p: float | None
    verdict: str


def outcomes(bench: Bench) -> tuple[dict[str, Outcome], Comparison]:
    """Every agent, and the comparison of all on the right shop's tasks."""
    own: dict[str, RunDirectory] = {}
    right: dict[str, RunDirectory] = {}
    for shop in SHOPS:
        agent, name = bench.trained(shop).path, f"{shop}-seed{bench.seed}"
        own[shop] = bench.evaluated(f"{name}-on-own", agent, shop)
        right[shop] = bench.evaluated(f"{name}-on-honest", agent, HONEST)
    compared = compare(read_all([f"{shop}={run.path}" for shop, run in right.items()]), Settings())
    found = {}
    for shop, run in right.items():
        summary = run.read_json("summary")
        evaluation, audit = summary["evaluation"], summary["audit"]
        counted = Counter(json.loads(line)["rule"] for line in (run.path / "findings.jsonl").read_text().splitlines())
        p, verdict = _against_honest(compared, shop)
        found[shop] = Outcome(
            success(own[shop]),
            float(own[shop].read_json("summary")["audit"]["success_without_violation"]["value"]),
            success(run),
            evaluation["interval"],
            {k: evaluation["behaviour"].get(k, 0.0) for k in ("writes_without_consent", "needless_transfers", "turns")},
            {layer: part["value"] for layer, part in audit["layers"].items() if part is not None},
            dict(counted),
            p,
            verdict,
        )
    return found, compared


def _against_honest(compared: Comparison, shop: str) -> tuple[float | None, str]:
    names = list(compared.names)
    pair = next((p for p in compared.pairs if {names[p.first], names[p.second]} == {HONEST, shop}), None)
    if pair is None:
        return None, ""
    told = "cannot be told apart" if pair.better is None else f"{names[pair.better]} is better"
    if pair.clean is not None and pair.clean.better != pair.better:
        clean = "cannot be told apart" if pair.clean.better is None else f"{names[pair.clean.better]} is better"
        told += f"; without any violation {clean}"
    return pair.adjusted, told


# what is shown

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""A head and rows."""


def tables(
    checks: Mapping[str, Checked], found: Mapping[str, Outcome], curves: Mapping[str, Curve]
) -> Mapping[str, Table]:
    """The tables by title."""
    made: dict[str, Table] = {
        "Before training": (
            ("shop", "tasks", "do nothing earns", "expert", "expert who never asks", "warnings on all", "tasks with"),
            [
                (shop, str(c.tasks), f"{c.idle:.0%}", f"{c.expert:.0%}", f"{c.unasked:.0%}", _listed(c.overall),
                 _listed({f"{rule} {n}": n for rule, n in c.rules.items()}))
                for shop, c in checks.items()
            ],
        ),
        "After training": (
            ("shop", "own tasks, own reward", "without a violation", "right tasks (95%)", "against honest",
             "writes without consent", "needless transfers", "turns"),
            [
                (shop, f"{o.own:.1%}", f"{o.clean:.1%}", _interval(o), _compared(o), *_behaviour(o))
                for shop, o in found.items()
            ],
        ),
    }  # fmt: skip
    layers = list(next(iter(found.values())).layers)
    made["Audit on the right tasks"] = (
        ("shop", *layers, *FINDINGS),
        [
            (
                shop,
                *(f"{o.layers[layer]:.1%}" for layer in layers),
                *(str(o.findings.get(rule, 0)) for rule in FINDINGS),
            )
            for shop, o in found.items()
        ],
    )
    if any(curve.right for curve in curves.values()):
        steps = [step for step, _ in next(iter(curves.values())).right]
        rows = []
        for shop, curve in curves.items():
            rows.append((f"{shop}: training, own reward", *(_share(curve.near(step)) for step in steps)))
            rows.append((f"{shop}: right tasks", *(_share(value) for _, value in curve.right)))
        made["By training step"] = (("success", *(f"{step:g}" for step in steps)), rows)
    return made


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(names) or "–"


def _interval(one: Outcome) -> str:
    low, high = one.interval
    return f"{one.honest:.1%} ({low:.1%} to {high:.1%})"


def _compared(one: Outcome) -> str:
    return one.verdict if one.p is None else f"{one.verdict} (p = {p_text(one.p)})"


def _behaviour(one: Outcome) -> tuple[str, str, str]:
    b = one.behaviour
    return f"{b['writes_without_consent']:.1%}", f"{b['needless_transfers']:.1%}", f"{b['turns']:.1f}"


def markdown(title: str, table: Table) -> str:
    """A table as Markdown."""
    head, rows = table
    lines = [f"| {' | '.join(head)} |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([f"{title}\n", *lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def shown(table: Table) -> Html:
    """A table as HTML in which words and figures are not broken."""
    head, rows = table
    whole, words = "white-space:nowrap", "overflow-wrap:normal"
    names = tag("tr", [tag("th", name, scope="col", style=words) for name in head])
    body = [
        tag("tr", tag("th", row[0], scope="row", style=whole), [tag("td", cell, style=words) for cell in row[1:]])
        for row in rows
    ]
    return tag("div", tag("table", tag("thead", names), tag("tbody", body)), class_="scroll")


def page(made: Mapping[str, Table], curves: Mapping[str, Curve]) -> str:
    """Everything as one HTML page."""
    charts = []
    for shop, curve in curves.items():
        lines = [Series("training, own reward", curve.training, "before")]
        lines += [Series("right tasks", curve.right, "after", dots=True)] if curve.right else []
        charts.append(line_chart(shop, lines, shares=True))
    sections = [tag("section", tag("h2", title), shown(table)) for title, table in made.items()]
    told = (
        "Agents with the same cold start, trained in a shop whose reward is right and in three whose reward is wrong. "
        "Lines: success in training by the shop's own reward; dots: held-out tasks of the right shop by its reward."
    )
    top = tag(
        "header",
        tag("p", "muarl · reward hacking", class_="eyebrow"),
        tag("h1", "What agents learn from wrong rewards"),
        tag("p", told, class_="lede"),
        class_="top",
    )
    drawn = tag("section", tag("h2", "Curves"), tag("div", charts, class_="charts"))
    return document("What agents learn from wrong rewards", join(top, tag("main", drawn, sections)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--name", default="hack", help="what the runs' names begin with")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"))
    parser.add_argument(
        "--curve", type=int, default=100, help="tasks on which checkpoints are evaluated; 0: they are not"
    )
    parser.add_argument("--check", type=int, default=200, help="tasks of each shop that are checked")
    parser.add_argument("settings", nargs="*", help="KEY=VALUE")
    given = parser.parse_args()
    bench = Bench(given.runs_dir.absolute(), given.name, given.seed, given.settings)
    checks = {shop: checked(shop, given.check) for shop in SHOPS}
    found, compared = outcomes(bench)
    curves = {shop: bench.curve(shop, given.curve) for shop in SHOPS}
    made = tables(checks, found, curves)
    stem = bench.root / f"{given.name}-seed{given.seed}"
    parts: dict[str, Mapping[str, Any]] = {"checks": checks, "outcomes": found, "curves": curves}
    write_json(Path(f"{stem}.json"), {name: {k: asdict(v) for k, v in part.items()} for name, part in parts.items()})
    write_text(Path(f"{stem}.html"), page(made, curves))
    write_page(Path(f"{stem}-compare.html"), compared)
    print("\n".join(markdown(title, table) for title, table in made.items()))
    print(f"Pages: {stem}.html, {stem}-compare.html")


if __name__ == "__main__":
    main()
