"""``muarl serve``: a checkpoint behind an OpenAI-compatible server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from muarl.inference.server.http import ChatServer


def serve(
    checkpoint: Annotated[str, typer.Argument(help="A run, a checkpoint folder, or `base`.", show_default=False)],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Settings of model and engine, such as engine.tensor_parallel=2."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The model's name for clients. Default: CHECKPOINT.")
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address to listen on. Beyond loopback, other machines can connect with the token."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8476,
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
    slots: Annotated[
        int | None,
        typer.Option(
            "--slots", min=1, help="Maximum concurrent completions. Default: what memory allows, at most 256."
        ),
    ] = None,
    queue: Annotated[
        int, typer.Option("--queue", min=0, help="Maximum queued requests; further ones get status 429.")
    ] = 1024,
    thinking: Annotated[
        bool | None,
        typer.Option("--thinking/--no-thinking", help="Turn thinking on or off. Default: as in the checkpoint's run."),
    ] = None,
    dtype: Annotated[
        Literal["float32", "bfloat16"] | None,
        typer.Option("--dtype", help="Number format. Default: float32 on a CPU, bfloat16 on a GPU."),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:1.")] = "auto",
    deadline: Annotated[
        float, typer.Option("--deadline", min=1, help="Maximum seconds for one completion, including queueing.")
    ] = 600.0,
    grace: Annotated[
        float, typer.Option("--grace", min=0, help="Seconds that running requests have to finish at shutdown.")
    ] = 30.0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="Additional host name of this machine (repeatable)."),
    ] = None,
    body: Annotated[int, typer.Option("--max-body", min=1, help="Largest request, in MiB.")] = 4,
    raw_prompts: Annotated[
        bool,
        typer.Option("--raw-prompts", help="Accept text prompts at /v1/completions, including control tokens."),
    ] = False,
    token_to: Annotated[
        Path | None,
        typer.Option("--token-to", help="Write the token to this file (mode 600) instead of printing it."),
    ] = None,
) -> None:
    """Serve a checkpoint to any OpenAI client: chat completions with tools and streaming.

    Clients must send a token as their API key: the one in MUARL_SERVE_TOKEN (or in the file that MUARL_SERVE_TOKEN_FILE
    names), else one that is made up and printed. Ctrl-C or SIGTERM lets requests under way finish. See docs/serving.md.

    [bold]Examples[/bold]

      muarl serve runs/quickstart

      muarl serve runs/mine --name my-agent --port 9000 --max-context 16384

      muarl serve runs/mine --engine vllm engine.tensor_parallel=2
    """
    from muarl.inference.server.addresses import TOKEN, listen, save_token, token_for
    from muarl.keys import is_named, read_secret
    from muarl.recipes.checkpoint_names import existing_checkpoint

    # Before torch is imported.
    existing_checkpoint(checkpoint)
    token_for(host, read_secret(TOKEN))
    listen(host, port).close()
    from muarl.recipes.chat_server import ServeOptions, serve, served_name, settings_told, tiny_hint

    options = ServeOptions(
        checkpoint, name, host, port, engine, max_context, slots, queue, thinking, dtype, device, deadline, grace,
        tuple(allow_host or ()), body, raw_prompts, tuple(settings or ()),
    )  # fmt: skip

    def ready(server: ChatServer, token: str) -> None:
        if token_to is not None:
            save_token(token_to, token)
        typer.echo(f"Serving {served_name(options)} at {server.address}")
        if not server.loopback:
            typer.echo(f"Listening on {host}: other machines can reach it, and everything is unencrypted.", err=True)
        if token_to is not None:
            typer.echo(f"The token is in {token_to}")
        elif not is_named(TOKEN):
            typer.echo(f"Its token: {token}")
        for line in (settings_told(options), tiny_hint(options)):
            if line is not None:
                typer.echo(line)
        typer.echo("Stop with Ctrl-C.")

    answered = serve(options, ready)
    typer.echo(f"Stopped. {answered:,} request{'' if answered == 1 else 's'} answered.")
