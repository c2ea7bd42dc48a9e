"""``muarl mcp``: install the public servers, look at a server's tools, offer a domain as a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from muarl.errors import ConfigError, DataError, InfrastructureError
from muarl.keys import read_secret

if TYPE_CHECKING:
    from muarl.domains.base import Domain, Task
    from muarl.domains.mcp.client import ServerTool

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

    [bold]Examples[/bold]

      muarl mcp install

      muarl mcp install git sqlite
    """
    from muarl.domains.mcp import servers

    chosen = [servers.server(name) for name in names or servers.SERVERS]
    problems = []
    for found in chosen:
        try:
            folder = servers.install(found.name, lambda text: typer.echo(text, err=True))
        except DataError as problem:  # the others may be had all the same
            problems.append(f"{found.name}: {problem}")
        else:
            typer.echo(f"{found.name}: {found.package} {found.version} ({found.licence}) in {folder}")
    if problems:
        raise DataError(" ".join(problems))


@mcp.command("list")
def list_servers() -> None:
    """Say which public servers are installed, and what the others lack.

    [bold]Example[/bold]

      muarl mcp list
    """
    from muarl.domains.mcp import servers

    for name, found in servers.SERVERS.items():
        typer.echo(f"{name:<12} {found.package} {found.version}: {found.missing() or 'ready'}")


@mcp.command("tools", context_settings={"allow_interspersed_args": False})
def tools(
    target: Annotated[list[str], typer.Argument(help="A scenario (mcp-git), a URL, or a command and its arguments.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, the form of a scenario's tools.json.")] = False,
    token_env: Annotated[str, typer.Option("--token-env", help="Variable with the token for a URL.")] = "",
) -> None:
    """Start or reach a server, and print the tools it has.

    {folder} in a command stands for an empty folder that is made for it.

    [bold]Examples[/bold]

      muarl mcp tools mcp-git

      muarl mcp tools --json -- python my_server.py {folder}

      muarl mcp tools --token-env MUARL_MCP_TOKEN http://127.0.0.1:8000/mcp
    """
    from muarl.domains.mcp.tools import to_json

    try:
        found = _tools_of(target, token_env)
    except InfrastructureError as problem:
        raise ConfigError(str(problem)) from None
    if as_json:
        typer.echo(json.dumps(to_json(found.values()), indent=1, ensure_ascii=False))
        return
    for tool in found.values():
        wanted = set(tool.parameters.get("required", ()))
        given = [n if n in wanted else f"{n}?" for n in tool.parameters.get("properties", {})]
        kind = {True: "reads", False: "writes", None: ""}[tool.reads_only]
        typer.echo(f"{tool.name}({', '.join(given)})  {kind}\n    {' '.join(tool.description.split())[:160]}")


def _tools_of(target: list[str], token_env: str) -> dict[str, ServerTool]:
    from muarl.domains.generated import ON_SERVERS, generated
    from muarl.domains.mcp.domain import McpDomain, discover
    from muarl.domains.mcp.launch import over_http, over_stdio

    if len(target) == 1 and target[0] in ON_SERVERS:
        domain = generated(target[0]).domain("medium")
        assert isinstance(domain, McpDomain)
        return domain.ask()
    if len(target) == 1 and target[0].startswith(("http://", "https://")):
        return discover(over_http(target[0], target[0], token_env=token_env))
    return discover(over_stdio(Path(target[0]).name, *target))


@mcp.command("serve")
def serve(
    domain: Annotated[str, typer.Argument(help="Such as retail, tau2-airline, retail-generated or mcp-git.")],
    task: Annotated[str, typer.Option("--task", help="A task's id; of a generated domain its number.")] = "",
    split: Annotated[str, typer.Option("--split", help="The task's split.")] = "",
    size: Annotated[str, typer.Option("--size", help="A generated domain's size.")] = "tiny",
    seed: Annotated[int, typer.Option("--seed", help="Seed of generated tasks.")] = 0,
    side: Annotated[Literal["assistant", "user"], typer.Option("--side", help="Whose tools to offer.")] = "assistant",
    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP instead of standard input and output.")] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8765,
) -> None:
    """Offer a domain as an MCP server: its tools, on a fresh world for every client session.

    Over HTTP, clients must send the token in MUARL_MCP_TOKEN, or the one that is made up and printed, as a bearer
    token. A benchmark's domain is offered with its own database, unless a task is named.

    [bold]Examples[/bold]

      muarl mcp serve retail

      muarl mcp serve tau2-airline --task 7 --http --port 8765

      muarl mcp serve retail-generated --size medium --task 3
    """
    import asyncio
    import secrets

    from muarl.domains.mcp.serve import LOOPBACK, DomainServer, serve_http, serve_stdio

    found, chosen = pick(domain, task=task, split=split, size=size, seed=seed)
    served = DomainServer(found, chosen, side=side)
    if not http:
        asyncio.run(serve_stdio(served))
        return
    token = read_secret(TOKEN)
    if not token and host not in LOOPBACK:
        raise ConfigError(f"--host {host} can be reached from elsewhere: set the token that clients need in {TOKEN}")
    made_up = not token
    token = token or secrets.token_urlsafe(24)

    def say(address: str) -> None:
        typer.echo(f"{domain} at {address}" + (f", token {token}" if made_up else ""), err=True)

    asyncio.run(serve_http(served, host=host, port=port, token=token, ready=say))


def pick(
    name: str, *, task: str = "", split: str = "", size: str = "tiny", seed: int = 0
) -> tuple[Domain, Task | None]:
    """A domain by name, and the task that its worlds begin with: None for a benchmark's domain without one.

    A short name such as "retail" is TAU2's domain where its data are installed, else the generated one.
    """
    from muarl import data
    from muarl.domains.generated import NAMES as GENERATED
    from muarl.domains.generated import ON_SERVERS
    from muarl.recipes.official import NAMES as OFFICIAL

    if f"tau2-{name}" in OFFICIAL:
        if "tau2" in data.installed() or f"{name}-generated" not in GENERATED:
            name = f"tau2-{name}"
        else:
            name = f"{name}-generated"
            typer.echo(f"The data of tau2 are not installed: this is {name}, a world made from a seed.", err=True)
    if name in (*GENERATED, *ON_SERVERS):
        return _generated(name, task, split, size, seed)
    if name in OFFICIAL:
        return _official(name, task, split)
    raise ConfigError(f"there is no domain {name!r}; there are {', '.join((*GENERATED, *ON_SERVERS, *OFFICIAL))}")


def _generated(name: str, task: str, split: str, size: str, seed: int) -> tuple[Domain, Task | None]:
    from muarl.domains.generated import SPLITS, generated

    world = generated(name)
    split = split or "test"
    if size not in world.sizes:
        raise ConfigError(f"--size: {name} comes in {', '.join(world.sizes)}, not {size!r}")
    if split not in SPLITS:
        raise ConfigError(f"--split: {name} has the splits {', '.join(SPLITS)}, not {split!r}")
    if task and not task.isdecimal():
        raise ConfigError(f"--task: tasks of {name} are numbered, such as 0 or 12, and {task!r} is no number")
    (made,) = world.tasks(split, 1, size=size, seed=seed, start=int(task or 0))
    return world.domain(size), made


def _official(name: str, task: str, split: str) -> tuple[Domain, Task | None]:
    from muarl.recipes.official import official

    source = official(name, training=True)
    domain = source.domain("fixed")
    if not task:
        return domain, None
    found = next((t for t in source.tasks(split or source.splits[0]) if t.id == task), None)
    if found is None:
        raise ConfigError(f"--task: {name} has no task {task!r} in its split {split or source.splits[0]!r}")
    return domain, found
