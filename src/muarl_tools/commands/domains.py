"""``muarl domains``: which environments there are, what each offers and tells an agent, and what is wrong with one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muarl.basics.errors import ConfigError, DataError, MuarlError
from muarl.cli import options
from muarl.cli.command import WORLDS, Subcommand
from muarl.cli.options import option
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl.environments.environment import Environment
    from muarl_tools.checks.environment.rules import CheckOutcome, EnvironmentReport
    from muarl_tools.checks.environment.samples import PromptModel

COLUMNS = ("name", "kind", "sizes", "rule-based user", "expert", "red team", "checkpoint", "splits", "from")
PIPE = 200
"""Columns of the table where no terminal says how many it has, so that rows stay whole."""

SHOWN = 3
"""Problems of one check that are printed."""

domains = typer.Typer(help="List environments with what each offers; show the policy and tools of one, or check it.")


@domains.callback(invoke_without_command=True)
def overview(context: typer.Context) -> None:
    """The list, where no command is named."""
    if context.invoked_subcommand is None:
        _print()


@domains.command("list")
def list_domains() -> None:
    """List the environments: muarl's own, the benchmarks, and those of installed plug-ins.

    muarl domains list
    """
    _print()


def _print() -> None:
    from muarl.environments.registry import find, names, origin, unused_plugins
    from muarl.observe.screen import Screen, print_narrow

    rows, broken = [], []
    with working("Looking at the environments"):
        for name in names():
            try:
                cells = _cells(find(name))
            except MuarlError as problem:  # a plug-in's defect is no reason not to list the others
                broken.append(str(problem))
                kind = "data not installed" if isinstance(problem, DataError) else "cannot be imported"
                cells = (kind, *[""] * (len(COLUMNS) - 3))
            rows.append((name, *cells, origin(name)))
    console = Screen(width=None if sys.stdout.isatty() else PIPE, highlight=False)
    print_narrow(console, COLUMNS, rows, first_to_go=("splits", "checkpoint", "sizes", "red team", "expert", "from"))
    for text in (*broken, *unused_plugins()):
        echo(text, err=True)
    echo(
        "Your own: FILE.py:NAME or package.module:NAME wherever a name is asked for (docs/domains.md). "
        "`muarl domains show NAME` prints policy and tools."
    )


def _cells(environment: Environment) -> tuple[str, ...]:
    """What a list says of an environment, but for its name and origin."""
    kind = "benchmark" if environment.is_benchmark else "on an MCP server" if environment.on_server else "generated"
    if not environment.is_benchmark and not environment.endless:
        kind = "fixed tasks"
    offers = (environment.rule_based_user, environment.expert, environment.red_team)
    splits = ", ".join(environment.splits)
    yes = ("yes" if offer is not None else "" for offer in offers)
    return kind, ", ".join(environment.sizes), *yes, environment.checkpoint or "", splits


@domains.command("show")
def show(
    name: options.EnvironmentName,
    size: options.Smallest = None,
    policy: Annotated[bool, typer.Option("--policy", help="Print only the policy, the exact system message.")] = False,
    tools: Annotated[
        bool, typer.Option("--tools", help="Print only the tools, as JSON for OpenAI's chat API.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Print what an agent in a domain is given: its policy and its tools.

    Clients of `muarl serve` send both with each request; a small model needs them word for word as in training. Where
    they differ from task to task, they are those of the first test task.

      muarl domains show retail-generated
      muarl domains show retail-generated --size official --policy > policy.md
      muarl domains show tau2-retail --tools > tools.json
      muarl domains show ./clinic.py:CLINIC
    """
    from muarl.environments.configure import briefing
    from muarl.environments.registry import find

    if policy + tools + as_json > 1:
        raise ConfigError("--policy, --tools and --json: one of them at a time")
    with working(f"Making the first test task of {name}"):
        told = briefing(name, size)
    specs = [spec.to_openai() for spec in told.tools]
    if policy:
        if sys.stdout.isatty():
            echo(told.policy)
        else:  # to the letter: a line break more is another prompt
            typer.echo(told.policy, nl=False)
    elif tools:
        echo(json.dumps(specs, indent=2, ensure_ascii=False))
    elif as_json:
        echo(json.dumps({"policy": told.policy, "tools": specs}, indent=2, ensure_ascii=False))
    else:
        echo(f"{told.policy}\n\nTools of {find(name).name}{told.size and f', size {told.size}'}:")
        for spec in told.tools:
            arguments = ", ".join(dict(spec.parameters.get("properties") or {}))
            echo(f"  {spec.name}({arguments})  {(spec.description or '').strip().partition(chr(10))[0]}")


@domains.command("check")
def check(
    name: options.EnvironmentName,
    size: options.Smallest = None,
    tasks: Annotated[
        int, option("--tasks", "Of the split test; of others a quarter as many.", min=1, show_default=True)
    ] = 200,
    seed: options.DrawSeed = 0,
    checkpoints: Annotated[
        list[str] | None, option("--checkpoint", "Its tokens of policy and tools are counted (repeatable).")
    ] = None,
    page: Annotated[
        Path | None, option("--page", "It has each numbered rule of the policy with what keeps it, and all findings.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check an environment: tasks, worlds, texts, users, expert, audit rules, red team.

    Each check prints what it has looked at and what is wrong, where, and what to change. Parts that the environment
    does not have are not checked, and the table says so. Exit code 1 if anything is wrong. --page has every problem, of
    which the terminal shows the first of each check, and the policy's rules one by one.

      muarl domains check ./clinic.py:CLINIC
      muarl domains check retail-generated --size official --tasks 500
      muarl domains check ./clinic.py:CLINIC --checkpoint smollm2
      muarl domains check ./clinic.py:CLINIC --page rules.html
      muarl domains check ./clinic.py:CLINIC --json
    """
    from muarl.basics.files import check_writable
    from muarl.environments.registry import find

    with working(f"Checking {name}"):
        environment = find(name)
        if size is not None and not environment.sizes:
            raise ConfigError(f"--size: {name} has only one size; remove --size")
        if size is not None:
            environment.check_size(size, "--size")
        if page is not None:
            check_writable(page, "--page", "rules.html")
        report = _report(environment, name, size, tasks, seed, checkpoints or (), quiet=as_json)
    if as_json:
        echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    if page is not None:
        from muarl.basics.files import write_text
        from muarl_tools.checks.environment.page import page_of

        write_text(page, page_of(report))
        echo(f"Page: {page}" if as_json else f"\nPage: {page}", err=as_json)
    wrong = [f"{outcome.check.name} ({len(outcome.problems)})" for outcome in report.outcomes if outcome.problems]
    if not as_json:
        echo(f"\nProblems: {', '.join(wrong)}" if wrong else "\nNo problems.")
    if wrong:
        raise typer.Exit(1)


def _report(
    environment: Environment,
    name: str,
    size: str | None,
    tasks: int,
    seed: int,
    checkpoints: Sequence[str],
    *,
    quiet: bool,
) -> EnvironmentReport:
    """Run the checks, and unless ``quiet`` print each when it is done."""
    from muarl_tools.checks.environment.rules import EnvironmentReport, run_checks
    from muarl_tools.checks.environment.samples import CheckContext

    context = CheckContext(environment, name, size, tasks, seed, models=[_prompt_model(spec) for spec in checkpoints])
    shown = f", size {context.size}" if context.size else ""
    if not quiet:
        echo(f"{environment.name}{shown}, {tasks} {context.split} tasks, seed {seed}\n")
    outcomes = []
    for outcome in run_checks(context):
        if not quiet:
            _print_result(outcome)
        outcomes.append(outcome)
    return EnvironmentReport(environment.name, context.size or "", context.split, tasks, seed, outcomes)


def _prompt_model(spec: str) -> PromptModel:
    """A checkpoint as far as its tokenizer and its settings tell; its weights are not read."""
    from muarl.basics.extras import require
    from muarl_tools.checks.environment.samples import PromptModel

    require("train", f"the checkpoint {spec}")
    from muarl.backends.model_support import local_folder
    from muarl.backends.models import model_format
    from muarl.backends.pretrained import missing
    from muarl.config.sections import ModelConfig
    from muarl.learning.checkpoints import load_tokenizer
    from muarl.planning.models import shape_from_config

    if (unfetched := missing(spec)) is not None:
        raise unfetched
    folder = local_folder(spec)
    if folder is None:
        raise ConfigError(
            f"--checkpoint: {spec} is not on this machine: give a folder, a run, or a fetched model's name"
        )
    chat = model_format(load_tokenizer(folder), ModelConfig())
    return PromptModel(
        spec, shape_from_config(folder).positions, lambda policy, tools: len(chat.prompt(policy, tools, []))
    )


def _print_result(result: CheckOutcome) -> None:
    """A row for a check, and below it what is wrong."""
    from muarl_tools.checks.printing import lines_of

    count = len(result.problems)
    echo(f"{result.check.name:<16} {result.state:<13} {result.skipped or result.measured}".rstrip())
    if count:
        echo(f"    {result.check.about}")
    for problem in result.problems[:SHOWN]:
        echo("\n".join(lines_of(problem, problem.where)))
    if count > SHOWN:
        echo(f"  - and {count - SHOWN} more")
    widths = [max(map(len, column)) for column in zip(*result.rows, strict=True)]
    for row in result.rows:
        echo("    " + "  ".join(map(str.ljust, row, widths)).rstrip())


COMMAND = Subcommand(domains, WORLDS, 31)
