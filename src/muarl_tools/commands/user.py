"""``muarl user``: is a simulated user fit for work, and a proxy that guards one for other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muarl.cli import options
from muarl.cli.command import WORLDS, Subcommand
from muarl.cli.options import RUN, as_overrides, endpoint_settings, option, prices_of, settings_of
from muarl.observe.terminal import echo, working
from muarl_tools.commands.serving import tell_ready
from muarl_tools.commands.user_fit import fit

if TYPE_CHECKING:
    from muarl.config.sections import RunConfig

user = typer.Typer(
    no_args_is_help=True,
    help="Measure simulated users before they are used, guard them, and fit them to people.",
    rich_markup_mode="rich",
)

FAILED = 3
"""The exit code where --fail-on has found what it is to fail on."""


def _user(who: str) -> dict[str, Any]:
    """Settings for the user that a person names."""
    from muarl.backends.checkpoint_names import existing_checkpoint

    if who.startswith("endpoint:"):
        return {"eval_user.kind": "llm", **endpoint_settings("eval_user.endpoint", who)}
    if who == "agenda":
        return {"eval_user.kind": "agenda"}
    existing_checkpoint(who, ("agenda",))
    return {"eval_user.kind": "sampled", "eval_user.checkpoint": who}


CHECK: options.Table = {
    "domain": RUN["domain"],
    "size": "domain.size",
    "split": "eval.split",
    "tasks": "eval.tasks",
    "trials": "eval.trials",
    "seed": "eval.seed",
    "concurrency": "eval.concurrency",
    "judge": "eval.user_judge",
    "max_cost": "eval.max_cost",
    "price": prices_of,
    "who": _user,
}


@user.callback()
def _group() -> None:
    """A group of its own."""


user.command("fit")(fit)


@user.command("check")
def check(
    who: Annotated[
        str,
        typer.Argument(
            metavar="USER",
            help="endpoint:MODEL or endpoint:MODEL@URL, agenda, or a run or checkpoint of `muarl sft-user`.",
            show_default=False,
        ),
    ],
    settings: Annotated[list[str] | None, options.settings_argument("eval_user.endpoint.temperature=1")] = None,
    domain: options.WeightedDomains = None,
    size: options.Smallest = None,
    split: Annotated[str, option("--split", show_default=True)] = "test",
    tasks: Annotated[int, option("--tasks", "Of each domain.", min=1, show_default=True)] = 20,
    trials: Annotated[int, option("--trials", "With each agent.", min=1, show_default=True)] = 1,
    seed: options.DrawSeed = 0,
    agents: Annotated[
        str | None,
        typer.Option("--agents", help="Only these agents, by name with commas between (docs/user-check.md)."),
    ] = None,
    agent: Annotated[
        list[str] | None, typer.Option("--agent", help="A model as a further agent: endpoint:MODEL[@URL] (repeatable).")
    ] = None,
    logs: Annotated[
        list[Path] | None,
        typer.Option(
            "--logs",
            help="Conversations of people to compare its language with, in any format that `muarl tasks from-log` "
            "reads, or TAU2's results (repeatable).",
        ),
    ] = None,
    judge: Annotated[str | None, option("--judge", "It looks as well.")] = None,
    concurrency: Annotated[int, option("--concurrency", min=1, show_default=True)] = 16,
    max_cost: options.MaxCost = None,
    price: options.Prices = None,
    page: options.Page = None,
    as_json: options.AsJson = False,
    fail_on: Annotated[str, option("--fail-on", "unfit, reservations or never.", show_default=True)] = "never",
) -> None:
    """Measure a simulated user before it is used: what it does wrong, how it talks, what it costs.

    It is played against agents of several kinds, so that no agent shapes the result: the scripted expert, a sloppy one,
    one that asks too much, one that gets numbers wrong, and others that refuse, stall, claim and hand over. Rules look
    at every message; --judge asks a model, too. The verdict is fit, fit with reservations or unfit.

      muarl user check agenda --domain retail-generated
      muarl user check endpoint:MODEL@http://localhost:8000/v1 --domain retail-generated --domain clinic-generated
          --page user.html
      muarl user check runs/customer --logs people.jsonl
      muarl user check endpoint:MODEL --price MODEL=2/8 --max-cost 5 --fail-on unfit --json
    """
    from muarl.basics.errors import ConfigError, MuarlError
    from muarl.basics.files import check_writable, write_text
    from muarl.basics.stopping import stop_signals
    from muarl_tools.checks.user.figures import said_by_people

    if fail_on not in ("unfit", "reservations", "never"):
        raise ConfigError(f"--fail-on must be unfit, reservations or never, not {fail_on!r}")
    if page is not None:
        check_writable(page, "--page", "user.html")
    with working("Preparing the check"), stop_signals():
        people = said_by_people(logs) if logs else None
        config = _config(settings_of(locals(), CHECK), settings or ())
        figures = _measured(config, agents.split(",") if agents else [], agent or (), people)
    if as_json:
        echo(json.dumps(figures, indent=2, ensure_ascii=False))
    else:
        _tell(figures)
    if page is not None:  # last: the verdict is told even if the page cannot be written
        from muarl_tools.checks.user.page import check_page

        write_text(page, check_page(figures))
        if not as_json:
            echo(f"Page: {page}")
    if figures["broke_off"] is not None:
        raise MuarlError(
            f"the check broke off, so that its verdict is of the {figures['conversations']:,} conversations before "
            f"that: {figures['broke_off']}"
        )
    name = figures["verdict"]["name"]
    if fail_on != "never" and (name == "unfit" or (fail_on == "reservations" and name != "fit")):
        raise typer.Exit(FAILED)


def _measured(
    config: RunConfig, agents: Sequence[str], models: Sequence[str], people: Sequence[Sequence[str]] | None
) -> dict[str, Any]:
    from muarl.basics.event_loop import event_loop
    from muarl.endpoints.client import Endpoint
    from muarl.endpoints.config import parse_endpoint
    from muarl.language.profile import compare
    from muarl.observe.progress import Progress
    from muarl.observe.screen import Screen
    from muarl.rewards.judge import open_judge_model
    from muarl.runs.prices import Bounds
    from muarl.runs.roles import Cast, check_roles
    from muarl_tools.checks.user.conversations import judge_check, play_check
    from muarl_tools.checks.user.figures import figures_of

    endpoints = [Endpoint(parse_endpoint(spec, concurrency=config.rollout.concurrency)) for spec in models]
    spec = config.eval.user_judge
    model = None if spec is None else open_judge_model(spec, config.eval.prices)
    check_roles(Cast.of(config), "eval_user", "judge", bound=Bounds.of(config).name("eval"))
    with Progress(Screen(stderr=True)) as progress, event_loop() as loop:
        played = play_check(config, progress, agents=agents, endpoints=endpoints)
        if model is not None:
            loop.closes(model)
            loop.run(judge_check(played, model, progress, concurrency=config.rollout.concurrency))
    figures = figures_of(played, None if model is None else model.endpoint.model)
    if people is not None:
        figures["logs"] = compare([one.said for one in played.conversations], people)
    return figures


def _config(asked: Mapping[str, Any], settings: Sequence[str]) -> RunConfig:
    """The configuration that the check is played by: an evaluation's, as far as user and tasks go."""
    from muarl.config.load import load_config
    from muarl.runs.prices import with_prices

    fixed = {"name": "user-check", "eval.agent": "expert", "eval.judge": "pass"}
    return with_prices(load_config("cpu", [*as_overrides({**fixed, **asked}), *settings]))


def _tell(figures: dict[str, Any]) -> None:
    """The verdict and what led to it, for a terminal."""
    from muarl.basics.untrusted import visible
    from muarl.observe.screen import Screen
    from muarl_tools.checks.user.page import check_table

    Screen().print(check_table(figures))
    verdict, cost, logs = figures["verdict"], figures["cost"], figures.get("logs")
    if figures["broke_off"] is not None:
        echo("Incomplete: the check broke off, and all figures are of what was played before that.")
    echo(f"Verdict: {verdict['name']}")
    for reason in verdict["reasons"]:
        echo(f"  - {reason}")
    echo(
        f"{figures['conversations']:,} conversations on {figures['tasks']:,} tasks with {len(figures['by_agent'])} "
        f"kinds of agents, {figures['messages']:,} messages of the user"
    )
    for name, why in figures["missing_agents"].items():
        echo(f"Not played: {name}: {why}")
    if figures["lost"]["conversations"]:
        first = visible(str(figures["lost"]["first"]))
        echo(f"Lost: {figures['lost']['conversations']} conversations. The first: {first}")
    if figures["ended"] != "complete":
        from muarl.accounts.budgets import RolloutEnd

        echo(f"Not all conversations were played: {RolloutEnd(figures['ended']).why}.")
    solved = figures["solved_with_expert"]
    if solved is not None:
        echo(f"With this user the expert solves {solved['value']:.1%} of its conversations")
    if logs is not None:
        people = logs["people"]
        echo(
            f"From the logs: length {logs['length']:.2f} (people among themselves {people['length']:.2f}), words "
            f"{logs['vocabulary']:.2f} ({people['vocabulary']:.2f})"
        )
    paid = f", ${cost['dollars']:.4f}" if cost["dollars"] else ""
    echo(
        f"A conversation: {cost['requests']:.1f} requests, {cost['prompt_tokens']:,.0f} + "
        f"{cost['completion_tokens']:,.0f} tokens{paid}, {cost['seconds']:.3g} s of waiting for the user"
    )


@user.command("proxy")
def proxy(
    upstream: Annotated[
        str, typer.Option("--upstream", help="The model's API root, usually ending in /v1.", show_default=False)
    ],
    model: Annotated[str | None, typer.Option("--model", help="Ask for this model, whatever clients ask for.")] = None,
    key_env: Annotated[
        str, typer.Option("--key-env", help="Environment variable with the upstream's API key; empty: no key is sent.")
    ] = "OPENAI_API_KEY",
    retries: Annotated[int, typer.Option("--retries", min=0, help="How often a message is asked again at most.")] = 2,
    rules: Annotated[
        str | None,
        typer.Option("--rules", help="Rules to go by, with commas between (docs/user-check.md). Default: the guard's."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", help="Append a line to this file for each message with a fault.")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="Seconds for one answer of the upstream.")] = 600.0,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8478,
    allow_host: options.AllowedHosts = None,
    grace: options.Grace = 30.0,
    body: options.MaxBody = 16,
    token_to: options.TokenFile = None,
) -> None:
    """Guard the simulated users of another program: an OpenAI-compatible server between it and the model.

    Point the program's user at it. Every reply is checked by the rules against the request's own system prompt and
    messages; on a fault the model is asked again, within bounds, and the usage that is reported holds all tries.
    /v1/guard has the counts. Clients must send a token as their API key: the one in MUARL_PROXY_TOKEN (or in the file
    that MUARL_PROXY_TOKEN_FILE names), otherwise a random one that is printed.

      muarl user proxy --upstream http://localhost:8000/v1 --key-env ""
      muarl user proxy --upstream https://api.openai.com/v1 --model gpt-4.1 --log faults.jsonl
    """
    import asyncio

    from muarl.basics.keys import read_secret
    from muarl.basics.web.addresses import listen, token_for
    from muarl.users.guard import GUARDED
    from muarl_tools.checks.user.proxy import TOKEN
    from muarl_tools.checks.user.proxy.http import ProxyServer
    from muarl_tools.checks.user.proxy.service import GuardingProxy, ProxySettings

    token = token_for(host, read_secret(TOKEN), TOKEN)
    key = read_secret(key_env) if key_env else ""
    chosen = rules.split(",") if rules else GUARDED
    settings = ProxySettings(upstream, key, model, chosen, retries, timeout, log)
    with listen(host, port) as listener:
        guarding = GuardingProxy(settings)
        names = tuple(allow_host or ())
        server = ProxyServer(guarding, listener, host=host, token=token, grace=grace, names=names, body=body << 20)
        exposed = None if server.loopback else host
        tell_ready(f"a guard of {model or 'any model'} at {server.address}", token, TOKEN, token_to, exposed=exposed)
        echo(f"Upstream: {upstream} {'with' if key else 'without'} a key")
        echo("Stop with Ctrl-C.")
        asyncio.run(server.run(signals=True))
    done = guarding.totals
    left = ", ".join(f"{rule} {n}" for rule, n in done.left.most_common()) or "none"
    echo(
        f"Stopped. {done.requests:,} requests, asked again {done.asked_again:,} times, {done.fixed:,} messages "
        f"fixed; faults that went through: {left}."
    )


COMMAND = Subcommand(user, WORLDS, 35)
