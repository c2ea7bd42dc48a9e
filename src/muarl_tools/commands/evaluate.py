"""``muarl eval``: a benchmark by its name in one line, or any configuration; options become settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated, Any

import typer

from muarl.cli import options
from muarl.cli.command import MEASURE, Subcommand
from muarl.cli.environment_approval import approved, approved_settings, domain_name
from muarl.cli.options import RUN, RunArguments, as_overrides, endpoint_settings, given, option, played_by, prices_of
from muarl.cli.train import run_recipe
from muarl.observe.terminal import echo, working
from muarl_tools.commands.suite import evaluate_suite, is_suite, resume_suite

SCRIPTED = {"sampled": "sampled", "endpoint": "endpoint", "expert": "expert", "idle": "idle", "do-nothing": "idle"}
"""Agents that go by name; anything else is endpoint:MODEL or a checkpoint."""

TURN_TOKENS = 2048
ANY_BENCHMARK = "tau2-retail"
"""What a checkpoint's own settings, and defaults, mean to a suite of benchmarks."""

CONCURRENCY = 16


def _agent(spec: str) -> dict[str, Any]:
    """Settings for the agent that a person names."""
    if spec.startswith("endpoint:"):
        return {"eval.agent": "endpoint", **endpoint_settings("eval.endpoint", spec)}
    if spec in SCRIPTED:
        return {"eval.agent": SCRIPTED[spec]}
    return {"eval.agent": "sampled", "model.checkpoint": spec}


EVAL: options.Table = {
    **{name: setting for name, setting in RUN.items() if name != "domain"},
    "judge": "eval.judge",
    "split": "eval.split",
    "tasks": "eval.tasks",
    "red_team": lambda kinds: {"eval.red_team": kinds.split(",")},
    "task": "eval.task_ids",
    "trials": "eval.trials",
    "noise": "eval.noise",
    "solo": "eval.solo",
    "guard": "eval.guard",
    "concurrency": "eval.concurrency",
    "max_cost": "eval.max_cost",
    "max_tokens": "eval.max_tokens",
    "price": prices_of,
    "user_judge": "eval.user_judge",
    "audit_judge": "eval.audit_judge",
    "greedy": lambda _: {"eval.temperature": 0.0},
    "agent": _agent,
    "user": played_by("--user", "eval_user.kind", "eval_user.endpoint", "llm", ("agenda", "scripted")),
}


def evaluate(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME] [KEY=VALUE]...",
            help="A benchmark (tau2-retail, tau2-airline, tau2-telecom, tau2-telecom-workflow, tau2-mock, "
            "tau2-banking_knowledge, tau1-retail, tau1-airline, bfcl-v3, bfcl-v4, acebench-en, acebench-zh), or any "
            "environment as in --domain; then settings that override the configuration.",
            show_default=False,
        ),
    ] = None,
    domain: options.WeightedDomains = None,
    config: Annotated[
        str | None,
        option(
            "--config",
            "Default: the checkpoint's own domain, size and limits over the preset cpu.",
            callback=options.named,
        ),
    ] = None,
    checkpoint: options.Checkpoint = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            help="Who serves: endpoint:MODEL or endpoint:MODEL@URL, a run or checkpoint folder, expert, idle.",
        ),
    ] = None,
    user: options.User = None,
    judge: Annotated[str | None, option("--judge", "Of assertions in words; or pass, fail.")] = None,
    split: Annotated[
        str | None, option("--split", "TAU2's default is base (all of both); telecom also has small, full; TAU1 dev.")
    ] = None,
    tasks: Annotated[
        int | None, option("--tasks", "Each is played --trials times. Default for benchmarks: all.")
    ] = None,
    task: Annotated[list[str] | None, option("--task", "its id (repeatable).")] = None,
    trials: Annotated[int | None, option("--trials", "pass^k needs k. The preset cpu has 4.")] = None,
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
    guard: Annotated[
        bool, typer.Option("--guard", help="Hold back an endpoint agent's calls that break the audit's rules.")
    ] = False,
    concurrency: Annotated[int | None, option("--concurrency")] = None,
    max_cost: options.MaxCost = None,
    max_tokens: options.MaxTokens = None,
    price: options.Prices = None,
    user_judge: Annotated[
        str | None, typer.Option("--user-judge", help="A model that looks for simulator errors: endpoint:MODEL.")
    ] = None,
    audit_judge: Annotated[
        str | None, typer.Option("--audit-judge", help="Model that audits what rules cannot decide: endpoint:MODEL.")
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
    name: options.Name = None,
    runs_dir: options.RunsDir = None,
    seed: options.Seed = None,
    resume: options.Resume = None,
    dry_run: options.DryRun = False,
) -> None:
    """Evaluate an agent on held-out tasks: pass^k with intervals, audit, simulator errors, do-nothing baseline.

    With a benchmark's name, its own protocol is followed to the letter: prompts, greeting, turn order, stop words,
    limits and seeds. Every finished conversation is kept at once; a run that was killed continues with --resume.

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
    names = [word for word in words or () if "=" not in word]
    overrides = approved_settings([word for word in words or () if "=" in word]) or []
    table = EVAL if red_team is None else {**EVAL, "tasks": "eval.red_team_tasks"}
    asked = given({**locals(), "config": config or "cpu"}, table)
    if suite is None and resume is not None and is_suite(resume):
        resume_suite(resume, dict(asked.settings), overrides)
        return
    chosen = domain_name(domain)
    place = _place(names, chosen)
    if suite is not None:
        if place is not None or isinstance(chosen, list) or resume is not None:
            raise typer.BadParameter("--suite: selects the benchmarks itself; resume a suite with --resume FOLDER only")
        own = _brought_to_suites(asked) if config is None else ()
        evaluate_suite(suite, asked.config, [*own, *overrides], dict(asked.settings), _of_benchmark, dry_run=dry_run)
    elif resume is None:
        run_recipe("evaluate", _new(asked, chosen, place, own=config is None))
    elif names:
        raise typer.BadParameter(f"{names[0]!r}: a resumed run has its own benchmark")
    else:
        settings = dict(asked.settings) if chosen is None else {**asked.settings, "domain.name": chosen}
        run_recipe("evaluate", replace(asked, settings=settings))


def _place(names: Sequence[str], chosen: Any) -> str | None:
    """The one environment that is named, as an argument or by --domain; None for several, and for none."""
    from muarl.basics.errors import ConfigError
    from muarl.environments.registry import is_reference, unknown
    from muarl.environments.registry import names as known

    if len(names) > 1:
        raise typer.BadParameter(f"{names[1]!r} is neither KEY=VALUE nor an option; one benchmark at a time")
    if not names:
        return chosen if isinstance(chosen, str) else None
    if not is_reference(names[0]) and names[0] not in known():
        raise ConfigError(f"{unknown(names[0])}. Name an agent with --agent, a checkpoint with --checkpoint.")
    place = approved(names[0])
    if chosen not in (None, place):
        raise typer.BadParameter(f"--domain: {names[0]} is named already; leave one of them out")
    return place


def _new(asked: RunArguments, chosen: Any, place: str | None, *, own: bool) -> RunArguments:
    """A new evaluation with what its benchmark and, if ``own``, its checkpoint bring along. What was asked wins."""
    # Code of somebody's own may take long to import.
    with working(f"Importing {place}") if place is not None and ":" in place else nullcontext():
        brought = ["name=eval", *(_own_settings(place, asked) if own else ())]
        brought += () if place is None else _of_benchmark(place, asked.settings)
        brought += _easy_users_alone(asked, place) if own else ()
    several = as_overrides({"domain.name": chosen}) if isinstance(chosen, list) else []
    return replace(asked, overrides=[*brought, *several, *asked.overrides])


def _brought_to_suites(asked: RunArguments) -> Sequence[str]:
    """What a checkpoint and the preset bring along to every benchmark of a suite. What was asked wins."""
    return (*_own_settings(ANY_BENCHMARK, asked), *_easy_users_alone(asked, ANY_BENCHMARK))


def _easy_users_alone(asked: RunArguments, place: str | None) -> Sequence[str]:
    """No conversations with harder users by default on a benchmark, whose scores are with its own users, with users of
    another kind, and where each conversation is paid for; only the last needs a line."""
    from muarl.environments.registry import find, names

    said = dict(word.split("=", 1) for word in asked.overrides)
    asked_for = {**said, **{setting: value for setting, value in asked.settings.items() if value is not None}}
    if "eval.harder_users" in asked_for:
        return ()
    domain = place or said.get("domain.name")
    benchmark = domain in names() and find(domain).is_benchmark
    others = any(asked_for.get(setting) for setting in ("eval.red_team", "eval.noise", "eval.solo"))
    if benchmark or others:
        return ("eval.harder_users=[]",)
    if asked_for.get("eval.agent") != "endpoint" and asked_for.get("eval_user.kind") != "llm":
        return ()
    echo(
        "Easy users alone, since every conversation is paid for: eval.harder_users=[typical,hard] adds others.",
        err=True,
    )
    return ("eval.harder_users=[]",)


def _own_settings(name: str | None, asked: RunArguments) -> Sequence[str]:
    """The settings that a named checkpoint brings along, as overrides that come before all others; a line says so.

    A benchmark says how it is played: of a checkpoint's settings only thinking counts there. In another domain than the
    run's, its size means nothing.
    """
    from muarl.backends.checkpoint_names import existing_checkpoint
    from muarl.environments.registry import find
    from muarl.runs.own_settings import THOUGHTS, own_settings

    settings, said = asked.settings, dict(word.split("=", 1) for word in asked.overrides)
    checkpoint = settings.get("model.checkpoint") or said.get("model.checkpoint")
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


def _of_benchmark(name: str, settings: Mapping[str, Any]) -> Sequence[str]:
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
    return as_overrides(yaml)


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
