"""``muarl eval``: a benchmark by its name in one line, or any configuration; options become settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from muarl.cli.command import MEASURE, Subcommand
from muarl.cli.endpoint_options import endpoint_settings, prices_of
from muarl.cli.named import WeightedDomains, approved, approved_settings, domain_name
from muarl.cli.train import Checkpoint, DryRun, Name, Named, RunsDir, Seed, run_recipe
from muarl.observe.terminal import echo, working
from muarl_tools.commands.suite import evaluate_suite, is_suite, resume_suite

Given = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME] [KEY=VALUE]...",
        help="A benchmark (tau2-retail, tau2-airline, tau2-telecom, tau2-telecom-workflow, tau2-mock, "
        "tau2-banking_knowledge, tau1-retail, tau1-airline, bfcl-v3, bfcl-v4, acebench-en, acebench-zh), or any "
        "environment as in --domain; then settings that override the preset.",
        show_default=False,
    ),
]

SCRIPTED = {"sampled": "sampled", "endpoint": "endpoint", "expert": "expert", "idle": "idle", "do-nothing": "idle"}
"""Agents that go by name; anything else is endpoint:MODEL or a checkpoint."""

"""Tokens that an episode of a benchmark may grow to with a checkpoint as the agent, if the model reads as many."""

TURN_TOKENS = 2048
ANY_BENCHMARK = "tau2-retail"
"""What a checkpoint's own settings mean to a suite of benchmarks."""

CONCURRENCY = 16


def evaluate(
    given: Given = None,
    domain: WeightedDomains = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            "-c",
            help="A preset's name, or a YAML file of your own. Default: the checkpoint's own domain, size and limits "
            "over the preset cpu.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Checkpoint = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            help="Who serves: endpoint:MODEL or endpoint:MODEL@URL, a run or checkpoint folder, expert, idle.",
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="Who plays the customer: endpoint:MODEL[@URL], or agenda.")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="Judge of natural-language assertions: endpoint:MODEL[@URL], pass, fail."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split", help="test, train, base (all of both; TAU2's default); telecom: small, full; TAU1: dev."
        ),
    ] = None,
    tasks: Annotated[
        int | None,
        typer.Option(
            "--tasks",
            "-n",
            help="Number of tasks, each of which is played --trials times. Default for benchmarks: all.",
        ),
    ] = None,
    task_id: Annotated[
        list[str] | None, typer.Option("--task", help="Only the task with this id (repeatable).")
    ] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", help="Episodes of each task; pass^k needs k. The preset cpu has 4.")
    ] = None,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="The most probable token each time, as eval.temperature=0.")
    ] = False,
    noise: Annotated[
        str | None,
        typer.Option(
            "--noise",
            metavar="AGENTxUSER",
            help="Instead of trials: 3x3 plays each task with every pair of 3 seeds of the agent and 3 of the user; "
            "muarl compare RUN then says whose noise it is. 3x3x2: each pair twice.",
        ),
    ] = None,
    solo: Annotated[
        bool, typer.Option("--solo", help="The agent alone, with the task's ticket and all tools.")
    ] = False,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", "-j", help="Maximum concurrent conversations.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", help="Start no new conversations after spending this many dollars.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", help="Token budget over all models.")] = None,
    price: Annotated[
        list[str] | None,
        typer.Option("--price", help="MODEL=IN/OUT: dollars for a million prompt and completion tokens (repeatable)."),
    ] = None,
    user_judge: Annotated[
        str | None, typer.Option("--user-judge", help="A model that looks for simulator errors: endpoint:MODEL.")
    ] = None,
    audit_judge: Annotated[
        str | None,
        typer.Option("--audit-judge", help="Model that audits what rules cannot decide: endpoint:MODEL."),
    ] = None,
    red_team: Annotated[
        str | None,
        typer.Option(
            "--red-team",
            metavar="KINDS",
            help="Hostile and difficult users instead: all, or some kinds such as impostor,injection. --tasks is then "
            "the number of tasks of each kind.",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite",
            help="Several benchmarks and one table: paper (TAU2 retail, airline, telecom, BFCL-V3 multi-turn, ACEBench "
            "agent) or paper-tau1 (with TAU1).",
        ),
    ] = None,
    name: Name = None,
    runs_dir: RunsDir = None,
    seed: Seed = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Run folder to resume; finished conversations are not repeated.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Evaluate an agent on held-out tasks: pass^k with intervals, audit, simulator errors, do-nothing baseline.

    With a benchmark's name, its own protocol is followed to the letter: prompts, greeting, turn order, stop words,
    limits and seeds. Every finished conversation is kept at once; a run that was killed continues with --resume.

    [bold]Examples[/bold]

      muarl eval tau2-telecom --split test --trials 4 --agent endpoint:MODEL --user endpoint:MODEL

      muarl eval tau2-retail --agent runs/mine --user endpoint:MODEL@http://localhost:8000/v1 --judge endpoint:MODEL

      muarl eval tau2-telecom --solo --agent endpoint:MODEL --price MODEL=2/8 --max-cost 20

      muarl eval --resume runs/eval-tau2-telecom

      muarl eval ./clinic.py:CLINIC --agent endpoint:MODEL --user endpoint:MODEL      (an environment of your own)

      muarl eval --suite paper --trials 4 --agent runs/mine --user endpoint:MODEL --judge endpoint:MODEL

    The long form takes any preset and setting:

      muarl eval --checkpoint runs/quickstart --trials 4      (in the run's own domain, with its limits)

      muarl eval --agent expert --tasks 50

      muarl eval --checkpoint runs/quickstart --red-team all --trials 4

      muarl eval --agent endpoint eval.endpoint.model=NAME domain.name=tau2-retail \\
          eval_user.kind=llm eval_user.endpoint.model=NAME
    """
    names = [word for word in given or () if "=" not in word]
    overrides = approved_settings([word for word in given or () if "=" in word]) or []
    if len(names) > 1:
        raise typer.BadParameter(f"{names[1]!r} is neither KEY=VALUE nor an option; one benchmark at a time")
    chosen = domain_name(domain)
    several = isinstance(chosen, list)
    place = _named(names[0]) if names else None if several else chosen
    if (several and names) or (chosen not in (None, place) and not several):
        raise typer.BadParameter(f"--domain: {names[0]} is named already; leave one of them out")
    settings: dict[str, Any] = {
        "eval.judge": judge,
        "eval.split": split,
        "eval.tasks" if red_team is None else "eval.red_team_tasks": tasks,
        "eval.red_team": red_team.split(",") if red_team else None,
        "eval.task_ids": task_id or None,
        "eval.trials": trials,
        "eval.noise": noise,
        "eval.solo": solo or None,
        "eval.concurrency": concurrency,
        "eval.max_cost": max_cost,
        "eval.max_tokens": max_tokens,
        "eval.prices": prices_of(price),
        "eval.user_judge": user_judge,
        "eval.audit_judge": audit_judge,
        "eval.temperature": 0.0 if greedy else None,
        "name": name,
        "runs_dir": None if runs_dir is None else str(runs_dir),
        "seed": seed,
        "model.checkpoint": checkpoint,
    }
    settings |= dict(_agent(agent))
    settings |= dict(_user(user))
    if suite is not None and (place is not None or resume is not None):
        raise typer.BadParameter("--suite: selects the benchmarks itself; resume a suite with --resume FOLDER only")
    if suite is not None:
        own = () if config is not None else _own_settings(ANY_BENCHMARK, settings, overrides)
        evaluate_suite(suite, config or "cpu", [*own, *overrides], settings, _of_benchmark, dry_run=dry_run)
        return
    if resume is not None and is_suite(resume):
        resume_suite(resume, settings, overrides)
        return
    if resume is None:
        # Code of somebody's own may take long to import.
        with working(f"Importing {place}") if place is not None and ":" in place else nullcontext():
            own = () if config is not None else _own_settings(place, settings, overrides)
            overrides = [f"domain.name={json.dumps(chosen)}", *overrides] if several else overrides
            overrides = ["name=eval", *own, *(() if place is None else _of_benchmark(place, settings)), *overrides]
    elif names:
        raise typer.BadParameter(f"{names[0]!r}: a resumed run has its own benchmark")
    elif chosen is not None:
        settings["domain.name"] = chosen
    run_recipe("evaluate", "cpu" if config is None else Named(config), overrides, dry_run, settings, resume)


def _named(name: str) -> str:
    """The environment of that name, its code approved. ConfigError if there is none."""
    from muarl.basics.errors import ConfigError
    from muarl.environments.registry import is_reference, names, unknown

    if is_reference(name) or name in names():
        return approved(name) or name
    raise ConfigError(f"{unknown(name)}. Name an agent with --agent, a checkpoint with --checkpoint.")


def _own_settings(name: str | None, settings: dict[str, Any], overrides: Sequence[str]) -> Sequence[str]:
    """The settings that a named checkpoint brings along, as overrides that come before all others; a line says so.

    A benchmark says how it is played: of a checkpoint's settings only thinking counts there. In another domain than the
    run's, its size means nothing.
    """
    from muarl.backends.checkpoint_names import existing_checkpoint
    from muarl.environments.registry import find
    from muarl.runs.own_settings import THOUGHTS, own_settings

    said = dict(word.split("=", 1) for word in overrides)
    checkpoint = settings["model.checkpoint"] or said.get("model.checkpoint")
    if checkpoint is None or (settings.get("eval.agent") or said.get("eval.agent", "sampled")) != "sampled":
        return ()
    existing_checkpoint(checkpoint, SCRIPTED if settings.get("eval.agent") == "sampled" else ())
    domain = name or said.get("domain.name")
    own = own_settings(checkpoint, said if domain is None else {*said, "domain.name"})
    if domain is not None and domain.startswith("["):  # several, of the run's size if they have it
        pass
    elif domain is not None and find(domain).is_benchmark:
        own = own.only(*THOUGHTS)
    elif domain is not None and domain != own.domain:
        own = own.without("domain.size")
    if own.values:
        echo(own.describe(), err=True)
    return own.overrides()


def _agent(spec: str | None) -> Iterator[tuple[str, Any]]:
    """Settings for the agent that a person names."""
    if spec is None:
        return
    if spec.startswith("endpoint:"):
        yield "eval.agent", "endpoint"
        yield from endpoint_settings("eval.endpoint", spec)
    elif spec in SCRIPTED:
        yield "eval.agent", SCRIPTED[spec]
    else:
        yield "eval.agent", "sampled"
        yield "model.checkpoint", spec


def _user(spec: str | None) -> Iterator[tuple[str, Any]]:
    """Settings for the customer that a person names."""
    from muarl.basics.errors import ConfigError

    if spec is None:
        return
    if spec.startswith("endpoint:"):
        yield "eval_user.kind", "llm"
        yield from endpoint_settings("eval_user.endpoint", spec)
    elif spec in ("agenda", "scripted"):
        yield "eval_user.kind", spec
    else:
        raise ConfigError(f"--user: {spec!r} is unknown; use endpoint:MODEL, endpoint:MODEL@URL or agenda")


def _of_benchmark(name: str, settings: dict[str, Any]) -> Sequence[str]:
    """What a benchmark's name stands for, as overrides that come before the person's own.

    Agent and user answer as the benchmark has them answer, all tasks of the split are played (of the one that published
    scores are about, if none is named), and a checkpoint gets room for the policy.
    """
    from muarl.environments.registry import find

    environment = find(name)
    yaml: dict[str, Any] = {"domain.name": name, "name": f"eval-{environment.name}"}
    if environment.is_benchmark:
        source = environment.official()
        kind = source.place
        yaml |= {"eval.tasks": None, "eval.trials": 1, "eval.seed": 300, "eval.temperature": kind.temperature}
        yaml |= {"eval.concurrency": CONCURRENCY, "eval.split": source.splits[0]}
        if settings.get("seed") is not None:
            yaml["eval.seed"] = settings["seed"]
        requests = settings.get("eval.concurrency") or CONCURRENCY
        for section, temperature in (
            ("eval.endpoint", kind.temperature),
            ("eval_user.endpoint", kind.user_temperature),
        ):
            if f"{section}.model" in settings:
                yaml |= {f"{section}.max_tokens": kind.max_tokens, f"{section}.temperature": temperature}
                yaml |= {f"{section}.concurrency": requests, f"{section}.timeout": 300.0, f"{section}.deadline": 900.0}
        agent = settings.get("eval.agent", "sampled")
        if agent == "sampled":
            yaml |= {
                "model.max_context": _context(settings.get("model.checkpoint")),
                "rollout.tokens_per_turn": TURN_TOKENS,
            }
    return [f"{key}={json.dumps(value)}" for key, value in yaml.items()]


def _context(checkpoint: str | None) -> int:
    """As many tokens as the checkpoint's model reads, up to a bound; a checkpoint that is not there is told later."""
    from muarl.backends.checkpoint_names import checkpoint_folder
    from muarl.basics.errors import CheckpointError
    from muarl.runs.own_settings import CONTEXT, context_of

    try:
        return context_of(checkpoint_folder(checkpoint or "base"))
    except CheckpointError:
        return CONTEXT


COMMAND = Subcommand(evaluate, MEASURE, 11)
