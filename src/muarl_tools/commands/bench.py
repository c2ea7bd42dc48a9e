"""``muarl replay`` and ``muarl score``: recorded calls run again, and recorded conversations scored again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muarl.basics.errors import ConfigError, DataError
from muarl.cli.command import MEASURE, Subcommand
from muarl.cli.options import option
from muarl.observe.terminal import echo, working
from muarl_tools.scoring import traces
from muarl_tools.scoring.jobs import BENCHMARKS, RecordedWorlds, jobs, replay_jobs

if TYPE_CHECKING:
    from muarl_tools.scoring.verdicts import Scoring

Bench = Annotated[
    str, typer.Argument(metavar="BENCH", help=f"The benchmark: {', '.join((*BENCHMARKS, *traces.BENCHMARKS))}.")
]
Out = Annotated[Path, option("--out", "JSON lines.")]
DomainName = Annotated[
    str | None,
    typer.Option("--domain", "-d", help="The benchmark's domain, such as airline, where the file does not name it."),
]
Split = Annotated[str | None, option("--split", "Of task numbers without one (TAU1).")]


def replay(
    bench: Bench,
    calls: Annotated[Path, typer.Option("--calls", help="JSON lines of recorded calls; see below.")],
    out: Out,
    domain: DomainName = None,
    split: Split = None,
) -> None:
    """Run recorded tool calls, each line in a fresh world, and write what the tools answer.

    Every line is {"domain", "task_id" (or null), "calls": [{"requestor", "name", "arguments"}]}. It comes back with
    "content" and "error" on each call, and "agent_hash" and "user_hash" of the state after the last one.

    BFCL: {"id", "long_context", "calls": [{"class", "name", "kwargs"}]} gets "content" on each call and "final_state".
    ACEBench: {"id", "language", "steps": [{"message"}]} gets "output" on each step and "final_state".

      muarl replay tau2 --calls calls.jsonl --out answers.jsonl
      muarl replay tau1 --domain airline --calls calls.jsonl --out answers.jsonl
      muarl replay bfcl-v4 --calls calls.jsonl --out answers.jsonl
    """
    if bench in traces.BENCHMARKS:
        _options_are_default(bench, {"--domain": domain is not None, "--split": split is not None})
        with working(f"Replaying {calls}"):
            answers = traces.replay_lines(bench, calls)
        _write(out, answers)
        echo(f"{traces.replay_report(answers)}: {out}")
        return
    from muarl.observe.progress import Progress

    worlds = RecordedWorlds(bench, domain, split)
    with working(f"Reading {calls}"):
        given = list(replay_jobs(worlds, calls))
    lines = []
    with Progress() as progress, progress.phase("replaying", len(given), "lines") as phase:
        for job in given:
            lines.append(job.run())
            phase.advance()
    _write(out, lines)
    count = sum(len(r["calls"]) for r in lines)
    echo(f"{len(lines)} lines, {count} calls, {sum(c['error'] for r in lines for c in r['calls'])} errors: {out}")


def score(
    bench: Bench,
    trajectories: Annotated[
        Path,
        typer.Option(
            "--trajectories",
            help="JSON lines (domain, task_id, messages, termination_reason; or episodes), or the benchmark's own "
            "results: TAU2's results.json or its folder, TAU1's historical trajectories, the result files of BFCL and "
            "ACEBench or their folder.",
        ),
    ],
    out: Out,
    judge: Annotated[str, option("--judge", "Of assertions in words; or pass, fail.", show_default=True)] = "pass",
    domain: DomainName = None,
    split: Split = None,
    evaluation: Annotated[
        str,
        typer.Option(
            "--evaluation",
            help="all: by each task's own basis, the official score. deterministic: without natural-language "
            "assertions, by what was said instead. Or TAU2's env, action, communicate, nl_assertions, "
            "all_ignore_basis, all_with_nl_assertions_ignore_basis.",
        ),
    ] = "all",
    fresh_tasks: Annotated[
        bool, typer.Option("--fresh-tasks", help="Use the installed tasks for scoring instead of those in the file.")
    ] = False,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Report results that differ from the recorded ones, but score anyway.")
    ] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Write each of the task's criteria and whether it was met.")
    ] = False,
    verdicts: Annotated[
        int,
        typer.Option(
            "--verdicts",
            min=1,
            max=100,
            help="Ask the judge so often about each conversation, with a line for each time; muarl compare then says "
            "how much of the noise is the judge's. Needs a model as judge.",
        ),
    ] = 1,
) -> None:
    """Score recorded conversations again, as the benchmark scores them.

    Every line is {"domain", "task_id", "messages", "termination_reason"}, or an episode of a run of muarl. It comes
    back as {"domain", "task_id", "reward", "breakdown"}. Reward is null, with an "error", for a conversation whose
    writes cannot be replayed (out of order, or with other results than recorded), that the judge did not answer about,
    or that an infrastructure failure ended; the others are scored. Exit code 2 if no conversation could be scored.

    BFCL: {"id", "calls": [turn][message][call]} gets "valid", "error_type" and the strict score. ACEBench: {"id",
    "language", "final_state", "process"} gets "end_to_end" and "process", as upstream has them and with its defects
    repaired.

      muarl score tau2 --trajectories saved.jsonl --out scores.jsonl --judge fail
      muarl score tau2 --trajectories runs/eval/episodes/eval.jsonl --out scores.jsonl --judge endpoint:gpt-4.1
      muarl score tau2 --trajectories tau2-bench/data/tau2/simulations/my_run --out scores.jsonl --lenient
      muarl score tau1 --domain airline --trajectories historical_trajectories/gpt-4o-airline.json --out scores.jsonl
      muarl score bfcl-v4 --trajectories result/my_model --out scores.jsonl
    """
    if bench in traces.BENCHMARKS:
        changed = {"--domain": domain is not None, "--split": split is not None, "--judge": judge != "pass"}
        changed |= {"--evaluation": evaluation != "all", "--fresh-tasks": fresh_tasks}
        _options_are_default(bench, changed | {"--lenient": lenient, "--details": details})
        with working(f"Scoring {trajectories}"):
            judged, told = traces.score_lines(bench, trajectories)
        _write(out, judged)
        echo(f"{told}: {out}")
        return
    from muarl_tools.scoring.verdicts import Scoring

    if bench == "tau1" and evaluation != "all":
        raise ConfigError("--evaluation: TAU1 has only one way of scoring; keep the default, all")
    how = Scoring(evaluation, strict=not lenient, details=details)
    worlds = RecordedWorlds(bench, domain, split)
    _score(worlds, trajectories, out, judge, how, fresh_tasks=fresh_tasks, verdicts=verdicts)


def _score(
    worlds: RecordedWorlds, trajectories: Path, out: Path, judge: str, how: Scoring, *, fresh_tasks: bool, verdicts: int
) -> None:
    """Score conversations of TAU, write a line for each verdict, and say what it came to."""
    import asyncio

    from muarl.rewards.judge import FixedJudge, ModelJudge, open_judge_model
    from muarl_tools.scoring.verdicts import report, score_all

    model = open_judge_model(judge)
    if model is None and verdicts > 1:
        raise ConfigError(f"--verdicts: the judge {judge!r} always says the same; name one with --judge endpoint:MODEL")
    who = FixedJudge(judge == "pass") if model is None else ModelJudge(model)
    if model is not None:
        echo(f"judge: {model.endpoint.about}", err=True)
    with working(f"Reading {trajectories}"):
        found = list(jobs(worlds, trajectories, fresh_tasks=fresh_tasks))
    if found and all(job.problem is not None for job in found):
        raise DataError(f"{trajectories}: none of its {len(found)} conversations can be scored. {found[0].problem}")
    with working(f"Scoring {len(found):,} conversations"):
        lines = asyncio.run(score_all([job for job in found for _ in range(verdicts)], who, how))
    if verdicts > 1:
        lines = [{**line, "verdict": n % verdicts} for n, line in enumerate(lines)]
    _write(out, lines)
    lines = lines[::verdicts]  # the first verdict on each conversation is its score
    if lines and all("error" in line for line in lines):
        raise DataError(
            f"{trajectories}: none of its {len(lines)} conversations could be scored. See {out} for the reasons"
        )
    echo(f"{report(lines, judge, how)}: {out}")


def _options_are_default(bench: str, set_options: Mapping[str, bool]) -> None:
    """ConfigError names the first option that says nothing about lines of calls."""
    for name, changed in set_options.items():
        if changed:
            raise ConfigError(f"{name}: {bench} is scored in one way only, from the calls")


def _write(out: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    from muarl.basics.files import write_text

    # ASCII, because recorded text may hold lone surrogates, which no file encoding can carry.
    write_text(out, "".join(json.dumps(line) + "\n" for line in lines))


REPLAY = Subcommand(replay, MEASURE, 20)


SCORE = Subcommand(score, MEASURE, 21)
