"""``muarl serve``: a checkpoint behind an OpenAI-compatible server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from muarl.cli import options
from muarl.cli.command import MEASURE, Subcommand
from muarl.cli.environment_approval import single
from muarl.cli.options import in_runs, option
from muarl.observe.terminal import echo, working
from muarl_tools.commands.serving import tell_ready

if TYPE_CHECKING:
    from muarl_tools.serve_model.http import ChatServer


def serve(
    checkpoint: Annotated[str, typer.Argument(help="A run, a checkpoint folder, or `base`.", show_default=False)],
    settings: Annotated[list[str] | None, options.settings_argument("engine.tensor_parallel=2")] = None,
    domain: options.Domain = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The model's name for clients. Default: CHECKPOINT.")
    ] = None,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8476,
    engine: Annotated[
        Literal["torch", "vllm"], typer.Option("--engine", help="muarl's own engine, or vLLM (extra `vllm`).")
    ] = "torch",
    max_context: Annotated[
        int | None,
        typer.Option(
            "--max-context",
            min=2,
            help="Tokens of prompt and completion together. Default: what the model reads, at most 32768.",
        ),
    ] = None,
    concurrency: Annotated[
        int | None, option("--concurrency", "Default: what memory allows, at most 256 completions.", min=1)
    ] = None,
    queue: options.Queue = 1024,
    thinking: Annotated[
        bool | None,
        typer.Option("--thinking/--no-thinking", help="Turn thinking on or off. Default: as in the checkpoint's run."),
    ] = None,
    dtype: Annotated[
        Literal["float32", "bfloat16"] | None, option("--dtype", "Default: float32 on a CPU, bfloat16 on a GPU.")
    ] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:1.")] = "auto",
    deadline: Annotated[
        float, typer.Option("--deadline", min=1, help="Maximum seconds for one completion, including queueing.")
    ] = 600.0,
    grace: options.Grace = 30.0,
    allow_host: options.AllowedHosts = None,
    body: options.MaxBody = 4,
    raw_prompts: Annotated[
        bool, typer.Option("--raw-prompts", help="Accept text prompts at /v1/completions, including control tokens.")
    ] = False,
    guard: Annotated[
        str | None,
        typer.Option("--guard", help="Hold back calls that break this domain's audit rules (docs/serving.md)."),
    ] = None,
    guard_mode: Annotated[
        Literal["block", "report"],
        typer.Option("--guard-mode", help="Hold them back and ask the model again, or only tell of them."),
    ] = "block",
    guard_tries: Annotated[
        int, typer.Option("--guard-tries", min=0, max=10, help="How often the model is asked again for one reply.")
    ] = 2,
    guard_text: Annotated[
        str | None, typer.Option("--guard-text", help="Said in place of calls that the model insists on.")
    ] = None,
    token_to: options.TokenFile = None,
    runs_dir: options.InRunsDir = None,
) -> None:
    """Serve a checkpoint to any OpenAI client: chat completions with tools and streaming.

    Clients must send a token as their API key: the one in MUARL_SERVE_TOKEN (or in the file that MUARL_SERVE_TOKEN_FILE
    names), otherwise a random one that is printed. Ctrl-C or SIGTERM lets running requests finish. See docs/serving.md.

      muarl serve runs/quickstart
      muarl serve runs/mine --name my-agent --port 9000 --max-context 16384
      muarl serve runs/mine --engine vllm engine.tensor_parallel=2
    """
    from muarl.backends.checkpoint_names import existing_checkpoint
    from muarl.basics.extras import require
    from muarl.basics.keys import read_secret
    from muarl.basics.web.addresses import listen, token_for
    from muarl_tools.serve_model import TOKEN

    checkpoint = in_runs(checkpoint, runs_dir)
    # Before torch is imported.
    require("train", "muarl serve")
    existing_checkpoint(checkpoint)
    token_for(host, read_secret(TOKEN), TOKEN)
    listen(host, port).close()
    with working(f"Loading {checkpoint}"):
        from muarl_tools.serve_model.recipe import ServeOptions, serve, served_name, settings_told, tiny_hint

        asked = ServeOptions(
            checkpoint, name, host, port, engine, max_context, concurrency, queue, thinking, dtype, device, deadline,
            grace, tuple(allow_host or ()), body, raw_prompts, tuple(settings or ()), single(domain), guard, guard_mode,
            guard_tries, guard_text,
        )  # fmt: skip

        def ready(server: ChatServer, token: str) -> None:
            exposed = None if server.loopback else host
            tell_ready(f"{served_name(asked)} at {server.address}", token, TOKEN, token_to, exposed=exposed)
            told = None if server.service.served.guard is None else server.service.served.guard.about
            for line in (settings_told(asked), told, tiny_hint(asked)):
                if line is not None:
                    echo(line)
            echo("Stop with Ctrl-C.")

        answered = serve(asked, ready)
    echo(f"Stopped. {answered:,} request{'' if answered == 1 else 's'} answered.")


COMMAND = Subcommand(serve, MEASURE, 14)
