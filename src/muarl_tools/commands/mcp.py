"""``muarl mcp``: install the public servers, look at a server's tools, offer a domain as a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from muarl.basics.errors import ConfigError, DataError, InfrastructureError
from muarl.basics.keys import read_secret
from muarl.cli import options
from muarl.cli.command import WORLDS, Subcommand
from muarl.cli.environment_approval import approved
from muarl.cli.options import option
from muarl.observe.terminal import echo, working

if TYPE_CHECKING:
    from muarl.domains.base import Domain
    from muarl.domains.mcp.client import ServerTool
    from muarl.domains.tasks import Task
    from muarl.environments.environment import Environment

TOKEN = "MUARL_MCP_TOKEN"

mcp = typer.Typer(
    no_args_is_help=True, help="MCP servers as domains, and domains as MCP servers.", rich_markup_mode="rich"
)


@mcp.command("install")
def install(
    names: Annotated[list[str] | None, typer.Argument(help="Servers to install. Default: all.")] = None,
) -> None:
    """Install the public servers that muarl's MCP scenarios run on, into a folder of their own.

    Versions are pinned. Nothing is installed globally, and nothing is fetched later on.

      muarl mcp install
      muarl mcp install git sqlite
    """
    from muarl.domains.mcp import servers

    chosen = [servers.server(name) for name in names or servers.SERVERS]
    problems = []
    for found in chosen:
        try:
            with working(f"Installing {found.name}"):
                folder = servers.install(found.name, lambda text: echo(text, err=True))
        except DataError as problem:  # the others may be had all the same
            problems.append(f"{found.name}: {problem}")
        else:
            echo(f"{found.name}: {found.package} {found.version} ({found.licence}) in {folder}")
    if problems:
        raise DataError(" ".join(problems))


@mcp.command("list")
def list_servers() -> None:
    """Say which public servers are installed, and what the others lack.

    muarl mcp list
    """
    from muarl.domains.mcp import servers

    for name, found in servers.SERVERS.items():
        echo(f"{name:<12} {found.package} {found.version}: {found.missing() or 'ready'}")


@mcp.command("tools", context_settings={"allow_interspersed_args": False})
def tools(
    target: Annotated[list[str], typer.Argument(help="A scenario (mcp-git), a URL, or a command and its arguments.")],
    as_json: options.AsJson = False,
    token_env: Annotated[str, typer.Option("--token-env", help="Variable with the token for a URL.")] = "",
) -> None:
    """Start or reach a server, and print the tools it has.

    {folder} in a command stands for an empty folder that is made for it. --json has the form of a scenario's
    tools.json.

      muarl mcp tools mcp-git
      muarl mcp tools --json -- python my_server.py {folder}
      muarl mcp tools --token-env MUARL_MCP_TOKEN http://127.0.0.1:8000/mcp
    """
    from muarl.domains.mcp.tools import to_json

    try:
        with working("Asking the server"):
            found = _tools_of(target, token_env)
    except InfrastructureError as problem:
        raise ConfigError(str(problem)) from None
    if as_json:
        echo(json.dumps(to_json(found.values()), indent=1, ensure_ascii=False))
        return
    for tool in found.values():
        wanted = set(tool.parameters.get("required", ()))
        given = [n if n in wanted else f"{n}?" for n in tool.parameters.get("properties", {})]
        kind = {True: "reads", False: "writes", None: ""}[tool.reads_only]
        echo(f"{tool.name}({', '.join(given)})  {kind}\n    {' '.join(tool.description.split())[:160]}")


def _tools_of(target: list[str], token_env: str) -> dict[str, ServerTool]:
    from muarl.domains.mcp.domain import McpDomain, discover
    from muarl.domains.mcp.launch import over_http, over_stdio
    from muarl.environments.registry import find, names

    if len(target) == 1 and target[0] in names():
        environment = find(target[0])
        domain = environment.make_domain(environment.sizes[-1] if environment.sizes else None)
        if not isinstance(domain, McpDomain):
            raise ConfigError(f"{target[0]} is on no MCP server: `muarl domains show {target[0]}` prints its tools")
        return domain.ask()
    if len(target) == 1 and target[0].startswith(("http://", "https://")):
        return discover(over_http(target[0], target[0], token_env=token_env))
    return discover(over_stdio(Path(target[0]).name, *target))


@mcp.command("serve")
def serve(
    domain: Annotated[
        str, typer.Argument(metavar="NAME", help=f"{options.ENVIRONMENT} Or a domain's: retail, airline, telecom.")
    ],
    task: Annotated[str, option("--task", "its id; of made tasks its number.")] = "",
    split: Annotated[str, option("--split", "Default: test, or a benchmark's own.")] = "",
    size: options.Smallest = None,
    seed: options.DrawSeed = 0,
    side: Annotated[Literal["assistant", "user"], typer.Option("--side", help="Whose tools to offer.")] = "assistant",
    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP instead of standard input and output.")] = False,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8765,
) -> None:
    """Offer a domain as an MCP server: its tools, on a fresh world for every client session.

    Over HTTP, clients must send the token in MUARL_MCP_TOKEN, or the one that is made up and printed, as a bearer
    token. A benchmark's domain is offered with its own database, unless a task is named.

      muarl mcp serve retail
      muarl mcp serve tau2-airline --task 7 --http --port 8765
      muarl mcp serve retail-generated --size medium --task 3
      muarl mcp serve ./clinic.py:CLINIC
    """
    import asyncio

    from muarl.basics.web.addresses import token_for
    from muarl.domains.mcp.serve import DomainServer, serve_http, serve_stdio

    with working(f"Making a world of {domain}"):
        found, chosen = pick(domain, task=task, split=split, size=size, seed=seed)
        served = DomainServer(found, chosen, side=side)
    if not http:
        asyncio.run(serve_stdio(served))
        return
    given = read_secret(TOKEN)
    token = token_for(host, given, TOKEN)

    def say(address: str) -> None:
        echo(f"{domain} at {address}" + ("" if given else f", token {token}"), err=True)

    asyncio.run(serve_http(served, host=host, port=port, token=token, ready=say, signals=True))


def pick(
    name: str, *, task: str = "", split: str = "", size: str | None = None, seed: int = 0
) -> tuple[Domain, Task | None]:
    """A domain by name, and the task that its worlds begin with: None for a benchmark's domain without one. A reference
    to code is approved, since a person has named it.

    A domain's name such as "retail" is that of a benchmark (TAU2's) where its data are installed, else the generated
    one.
    """
    from muarl.environments.registry import environment_of, find, is_reference, names
    from muarl_worlds import data

    if not is_reference(name) and name not in names():
        environment = environment_of(name, benchmark=True)
        if environment is not None and environment.is_benchmark:
            family, made = environment.official().family, environment_of(name)
            if family not in data.installed() and made is not None and not made.is_benchmark:
                environment = made
                told = f"The data of {family} are not installed: this is {made.name}, a world made from a seed."
                echo(told, err=True)
            name = environment.name
    environment = find(approved(name) or name)
    if environment.is_benchmark:
        return _official(environment, task, split)
    return _own(environment, task, split, size, seed)


def _own(environment: Environment, task: str, split: str, size: str | None, seed: int) -> tuple[Domain, Task | None]:
    name, split = environment.name, split or "test"
    if size is not None:
        environment.check_size(size, "--size")
    environment.check_split(split, "--split")
    if task and not task.isdecimal():
        raise ConfigError(f"--task: tasks of {name} are numbered, such as 0 or 12, and {task!r} is no number")
    made = environment.make_tasks(split, 1, size=size, seed=seed, start=int(task or 0))
    if not made:
        raise ConfigError(f"--task: the split {split} of {name} has no task number {task}")
    return environment.make_domain(size), made[0]


def _official(environment: Environment, task: str, split: str) -> tuple[Domain, Task | None]:
    source, name = environment.official(), environment.name
    domain = source.domain("fixed")
    if not task:
        return domain, None
    found = next((t for t in source.tasks(split or source.splits[0]) if t.id == task), None)
    if found is None:
        raise ConfigError(f"--task: {name} has no task {task!r} in its split {split or source.splits[0]!r}")
    return domain, found


COMMAND = Subcommand(mcp, WORLDS, 33)
