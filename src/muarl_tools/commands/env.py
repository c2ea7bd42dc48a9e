"""``muarl env``: environments for trainers in other processes (``serve``), and for hubs (``env_export``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from muarl.cli import options
from muarl.cli.command import WORLDS, Subcommand
from muarl.cli.environment_approval import approved
from muarl.cli.options import option
from muarl.observe.terminal import echo, working
from muarl_tools.commands.env_export import export
from muarl_tools.commands.serving import tell_ready

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muarl.environments.environment import Environment
    from muarl_tools.serve_environments.http import EnvironmentServer
    from muarl_tools.serve_environments.service import ServedEnvironments

env = typer.Typer(
    no_args_is_help=True, help="Environments, with users and rewards, for other trainers.", rich_markup_mode="rich"
)
env.command("export")(export)


@env.command("serve")
def serve(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help=options.ENVIRONMENT, show_default=False),
    ],
    user: Annotated[str, option("--user", show_default=True)] = "agenda",
    judge: Annotated[str | None, option("--judge", "Of assertions in words, where tasks have some.")] = None,
    split: Annotated[str | None, option("--split", "Where a request names none. Default: train, or the first.")] = None,
    size: Annotated[str | None, option("--size", "Where a request names none. Default: the smallest.")] = None,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8477,
    concurrency: Annotated[int, option("--concurrency", min=1, show_default=True)] = 1024,
    queue: options.Queue = 1024,
    session_idle: Annotated[
        float, typer.Option("--session-idle", min=1, help="Seconds after which a session closes that nobody asks for.")
    ] = 900.0,
    allow_base_url: Annotated[
        list[str] | None,
        typer.Option("--allow-base-url", help="Ask only models below this address (repeatable). Default: any."),
    ] = None,
    allow_host: options.AllowedHosts = None,
    grace: options.Grace = 30.0,
    body: options.MaxBody = 16,
    token_to: options.TokenFile = None,
) -> None:
    """Serve environments over HTTP: whole conversations with a trainer's model, or step by step.

    Clients must send a token as a bearer token: the one in MUARL_ENV_TOKEN (or in the file that MUARL_ENV_TOKEN_FILE
    names), otherwise a random one that is printed. Ctrl-C or SIGTERM lets running conversations finish. See
    docs/integrations.md.

      muarl env serve retail-generated
      muarl env serve retail-generated airline-generated --size official --port 9000
      muarl env serve tau2-telecom --split train --user endpoint:MODEL@http://localhost:8000/v1
      muarl env serve ./clinic.py:CLINIC --allow-base-url http://10.0.0.7:8000/v1
    """
    import asyncio

    from muarl.basics.keys import read_secret
    from muarl.basics.web.addresses import token_for
    from muarl.endpoints.config import check_url
    from muarl.environments.play import named_users
    from muarl.environments.registry import find
    from muarl.rewards.judge import make_judge
    from muarl_tools.serve_environments import TOKEN
    from muarl_tools.serve_environments.service import ServedEnvironments

    token = token_for(host, read_secret(TOKEN), TOKEN)
    with working(f"Preparing {', '.join(names)}"):
        players = named_users(user, concurrency=concurrency, where="--user")
        served = ServedEnvironments(
            environments=_different([find(approved(name) or name) for name in names]),
            users=players,
            judge=None if judge is None else make_judge(judge, {}),
            split=split,
            size=size,
            base_urls=tuple(check_url(prefix) for prefix in allow_base_url or ()),
            concurrency=concurrency,
            queue=queue,
            idle=session_idle,
        )
        _check(served)

        def ready(server: EnvironmentServer) -> None:
            which = ", ".join(e.name for e in served.environments)
            exposed = None if server.loopback else host
            tell_ready(f"{which} at {server.where.url}", token, TOKEN, token_to, exposed=exposed)
            echo("Users: " + ("by rules" if players is None else players.about))
            if measured := ", ".join(e.name for e in served.environments if e.is_benchmark):
                echo(f"For evaluation: {measured}. What is trained on a benchmark's own tasks has no score there.")
            echo("Stop with Ctrl-C.")

        played = asyncio.run(_serve(served, host, port, token, grace, tuple(allow_host or ()), body << 20, ready))
    echo(f"Stopped. {played:,} conversation{'' if played == 1 else 's'} played.")


async def _serve(
    served: ServedEnvironments,
    host: str,
    port: int,
    token: str,
    grace: float,
    names: tuple[str, ...],
    body: int,
    ready: Callable[[EnvironmentServer], None],
) -> int:
    """Serve until a signal comes; how many conversations were played."""
    from muarl.basics.web.addresses import listen
    from muarl.endpoints.client import Endpoint
    from muarl_tools.serve_environments.http import EnvironmentServer
    from muarl_tools.serve_environments.service import EnvironmentService

    with listen(host, port) as listener:
        service = EnvironmentService(served)
        server = EnvironmentServer(service, listener, host=host, token=token, grace=grace, names=names, body=body)
        if isinstance(served.users, Endpoint):  # a wrong key or address should be known before anybody trains
            await served.users.check(boundary="user")
        ready(server)
        await server.run(signals=True)
    return service.played


def _different(environments: Sequence[Environment]) -> Sequence[Environment]:
    from muarl.basics.errors import ConfigError

    names = [e.name for e in environments]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"two of the environments are called {twice}: serve one of them, or give it another name")
    return environments


def _check(served: ServedEnvironments) -> None:
    """Refuse before anybody asks what could not be played: ConfigError for a split, a size or a user that there is not,
    DataError for a benchmark whose data are not installed."""
    for environment in served.environments:
        if served.split is not None:
            environment.check_split(served.split, "--split")
        if served.size is not None:
            environment.check_size(served.size, "--size")
        environment.place(served.size).users(served.users)


COMMAND = Subcommand(env, WORLDS, 34)
