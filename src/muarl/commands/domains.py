"""``muarl domains``: which domains there are, and what an agent in one of them is told."""

from __future__ import annotations

import difflib
import json
import sys
from typing import Annotated, get_args

import typer

from muarl.errors import ConfigError

domains = typer.Typer(no_args_is_help=True, help="List domains; show a domain's policy and tools.")


@domains.command("list")
def list_domains() -> None:
    """List the domains: generated ones with their sizes, and benchmarks.

    [bold]Example[/bold]

      muarl domains list
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from muarl.domains.generated import NAMES, ON_SERVERS, generated

    table = Table("domain", "kind", "sizes", box=None, pad_edge=False)
    for name in _names():
        kind = "generated" if name in NAMES else "on an MCP server" if name in ON_SERVERS else "benchmark"
        sizes = ", ".join(generated(name).sizes) if name in (*NAMES, *ON_SERVERS) else ""
        table.add_row(Text(name), Text(kind), Text(sizes))
    Console().print(table)


@domains.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A domain's name, as `muarl domains list` has it.", show_default=False)],
    size: Annotated[
        str | None,
        typer.Option("--size", help="A generated domain's size. Default: the smallest.", show_default=False),
    ] = None,
    policy: Annotated[bool, typer.Option("--policy", help="Print only the policy, the exact system message.")] = False,
    tools: Annotated[
        bool, typer.Option("--tools", help="Print only the tools, as JSON for OpenAI's chat API.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print both as one JSON object.")] = False,
) -> None:
    """Print what an agent in a domain is told: its policy, and its tools.

    Clients of `muarl serve` send both with each request; a small model needs them word for word as in training. Where
    they differ from task to task, they are those of the first test task.

    [bold]Examples[/bold]

      muarl domains show retail-generated

      muarl domains show retail-generated --size official --policy > policy.md

      muarl domains show tau2-retail --tools > tools.json
    """
    from muarl.recipes.briefing import briefing

    if name not in _names():
        near = difflib.get_close_matches(name, _names(), 1, 0.6)
        hint = f"; did you mean {near[0]}?" if near else "; `muarl domains list` lists them"
        raise ConfigError(f"there is no domain {name!r}{hint}")
    if policy + tools + as_json > 1:
        raise ConfigError("--policy, --tools and --json: one of them at a time")
    told = briefing(name, size)
    specs = [spec.to_openai() for spec in told.tools]
    if policy:
        # To the letter: a line break more is another prompt.
        typer.echo(told.policy, nl=sys.stdout.isatty())
    elif tools:
        typer.echo(json.dumps(specs, indent=2, ensure_ascii=False))
    elif as_json:
        typer.echo(json.dumps({"policy": told.policy, "tools": specs}, indent=2, ensure_ascii=False))
    else:
        typer.echo(f"{told.policy}\n\nTools of {name}{told.size and f', size {told.size}'}:")
        for spec in told.tools:
            arguments = ", ".join(dict(spec.parameters.get("properties") or {}))
            typer.echo(f"  {spec.name}({arguments})  {(spec.description or '').strip().partition(chr(10))[0]}")


def _names() -> tuple[str, ...]:
    from muarl.config.sections import DomainConfig

    return get_args(DomainConfig.model_fields["name"].annotation)
