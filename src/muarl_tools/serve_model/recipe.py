"""A checkpoint behind an OpenAI-compatible server (``muarl serve``): from options to a service that is ready.

Not to be mixed up with ``serving``, which is about vLLM servers that a training run samples from.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

import torch
import yaml

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.backends.engines import Backend
from muarl.backends.hardware import free_memory
from muarl.backends.models import load_model, model_format
from muarl.basics.errors import ConfigError
from muarl.basics.keys import read_secret
from muarl.basics.web.addresses import listen, token_for
from muarl.chat_formats.base import ChatFormat
from muarl.chat_formats.choice import thinking_modes
from muarl.config.load import load_config
from muarl.config.sections import ModelConfig, RunConfig
from muarl.environments.configure import briefing
from muarl.environments.registry import find, names
from muarl.inference.base import Sampler
from muarl.learning.checkpoints import Policy, check_policy
from muarl.planning.models import shape_from_config
from muarl.runs.context import prepare
from muarl.runs.own_settings import TAKEN, THOUGHTS, TINY, OwnSettings, own_settings
from muarl.types.chat import ToolSpec
from muarl_tools.serve_model import TOKEN
from muarl_tools.serve_model.engine import ServedEngine
from muarl_tools.serve_model.guarding import GuardMode, ServedGuard, make_guard
from muarl_tools.serve_model.http import ChatServer
from muarl_tools.serve_model.service import ChatService

log = logging.getLogger(__name__)

CONTEXT = 32768
"""Tokens of prompt and completion together, at most, if the model reads as many and nobody says otherwise."""
SLOTS = 256
CPU_SHARE, GPU_SHARE = 0.25, 0.8
"""Of the memory that is free beside the weights, keys and values may take so much."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What to serve, and how. None where the checkpoint, or this machine, decides.

    ``checkpoint``: as of ``muarl eval``. ``name``: of the model, as clients say it; None: the checkpoint as given.
    ``slots``: completions generated at once; ``queue``: how many more may wait. ``context``: tokens of prompt and
    completion together. ``deadline``: seconds for one completion. ``grace``: seconds for what is running when the
    server ends. ``names``: further names of this machine. ``body_mib``: largest request. ``settings``: KEY=VALUE of a
    run's configuration, for what is said nowhere else. ``domain``: the environment whose conversations it is to serve,
    for hints and for the spelling of its tools; None: that of the checkpoint's run. ``guard``: the environment whose
    audit rules replies must keep; ``guard_mode``, ``guard_tries``, ``guard_text``: see ``ServedGuard``.
    """

    checkpoint: str
    name: str | None = None
    host: str = "127.0.0.1"
    port: int = 8476
    engine: Literal["torch", "vllm"] = "torch"
    context: int | None = None
    slots: int | None = None
    queue: int = 1024
    thinking: bool | None = None
    dtype: Literal["float32", "bfloat16"] | None = None
    device: str = "auto"
    deadline: float = 600.0
    grace: float = 30.0
    names: tuple[str, ...] = ()
    body_mib: int = 4
    raw_prompts: bool = False
    settings: tuple[str, ...] = ()
    domain: str | None = None
    guard: str | None = None
    guard_mode: GuardMode = "block"
    guard_tries: int = 2
    guard_text: str | None = None


Ready = Callable[[ChatServer, str], None]


def serve(options: ServeOptions, ready: Ready | None = None) -> int:
    """Serve until SIGTERM or SIGINT; returns how many requests were answered.

    ``ready`` is told the server and its token. What can be refused is refused before any weight is read. ConfigError
    for an address that is taken or would be open to everybody, CheckpointError for what is no checkpoint.
    """
    token = token_for(options.host, read_secret(TOKEN), TOKEN)
    config = served_config(options)
    guard = guard_of(options)
    with closing(listen(options.host, options.port)) as listener:
        prepare(config)
        policy = load_model(config.model, weights=config.engine.kind == "torch")
        sampler = Backend.of(config).sampler(policy)
        service = make_service(sampler, policy, config.model, config.rollout.concurrency, options, guard)
        server = ChatServer(
            service,
            listener,
            host=options.host,
            token=token,
            grace=options.grace,
            names=options.names,
            body=options.body_mib << 20,
        )

        async def run() -> None:
            if ready is not None:
                ready(server, token)
            try:
                await server.run(signals=True)
            finally:
                await sampler.aclose()

        asyncio.run(run())
        return service.served.answered


def make_service(
    sampler: Sampler,
    policy: Policy,
    model: ModelConfig,
    slots: int,
    options: ServeOptions,
    guard: ServedGuard | None = None,
) -> ChatService:
    """The service over a sampler with the policy's weights, which answers ``slots`` requests at once."""
    return ChatService(
        ServedEngine(sampler, most=slots + options.queue, deadline=options.deadline),
        (_mode(policy, model, thinking=False), _mode(policy, model, thinking=True)),
        name=served_name(options),
        max_context=model.max_context,
        thinking=model.thinking,
        raw_prompts=options.raw_prompts,
        tools=known_tools(options),
        guard=guard,
    )


def guard_of(options: ServeOptions) -> ServedGuard | None:
    """The guard that is asked for. ConfigError where its environment declares no audit rules."""
    if options.guard is None:
        return None
    return make_guard(options.guard, options.guard_mode, options.guard_tries, options.guard_text)


def _mode(policy: Policy, model: ModelConfig, *, thinking: bool) -> ChatFormat | None:
    """The chat format with or without thinking; None if the model has no such mode, unless it is the one asked for:
    then CheckpointError says so."""
    name = model.chat_format
    if thinking != model.thinking and thinking not in thinking_modes(policy.tokenizer, name):
        return None
    return model_format(policy.tokenizer, model.model_copy(update={"thinking": thinking}))


def served_name(options: ServeOptions) -> str:
    """What clients call the model."""
    return options.name or options.checkpoint.rstrip("/")


def known_tools(options: ServeOptions) -> tuple[ToolSpec, ...]:
    """The tools of the environments that the checkpoint's run was in, or of the one that is said, as agents see them.

    None of an environment that cannot be had here, or whose tools a server of its own would have to be started for:
    then the model is shown them as clients spell them, and the log says so.
    """
    found: list[ToolSpec] = []
    for name, size in _environments(options):
        try:
            environment = find(name)
            if environment.on_server:
                raise ConfigError("its tools are a server's, which is not started for this")
            found += briefing(name, size if size in environment.sizes else None).tools
        except Exception as problem:  # a person's own code among them
            log.warning("the tools of %s are shown to the model as clients spell them: %s", name, problem)
    return tuple(found)


def _environments(options: ServeOptions) -> list[tuple[str, str | None]]:
    """Names and sizes of the environments that conversations with the model are expected in."""
    try:
        values = own_settings(options.checkpoint, ("domain.name",) if options.domain else ()).values
    except ConfigError:
        values = {}
    name = options.domain or values.get("domain.name")
    if isinstance(name, list):
        return [(str(one["name"]), one.get("size")) for one in name]
    return [] if name is None else [(str(name), values.get("domain.size"))]


def tiny_hint(options: ServeOptions) -> str | None:
    """What a client must send to a tiny model to get more than noise; None for larger ones."""
    parameters = shape_from_config(checkpoint_folder(options.checkpoint)).parameters
    if parameters >= TINY:
        return None
    try:
        values = own_settings(options.checkpoint).values
    except ConfigError:
        values = {}
    name, size = options.domain or values.get("domain.name"), values.get("domain.size")
    name = None if isinstance(name, list) else name
    shown = "muarl domains show DOMAIN" if name is None else f"muarl domains show {name}"
    if name in names() and size is not None and find(str(name)).sizes:  # a run's own code is not loaded for a hint
        shown += f" --size {size}"
    return (
        f"A model of {parameters / 1e6:.2f}M parameters: it makes sense only in conversations that begin with the "
        f"policy of its domain and have its tools (`{shown} --json` prints both)."
    )


def served_config(options: ServeOptions) -> RunConfig:
    """The configuration that model and engine are made by. ConfigError, CheckpointError: what was asked cannot be."""
    folder = checkpoint_folder(options.checkpoint)
    model = check_policy(folder)
    gpu = _gpu(options.device)
    context = options.context or min(CONTEXT, int(model.max_position_embeddings))
    if context > model.max_position_embeddings:
        raise ConfigError(
            f"--max-context {context}: this model was made for at most {model.max_position_embeddings} tokens "
            "(max_position_embeddings in its config.json)"
        )
    dtype = options.dtype or ("float32" if gpu is None else "bfloat16")
    values: dict[str, Any] = {
        "model.checkpoint": str(folder),
        "model.device": options.device,
        "model.dtype": dtype,
        "model.max_context": context,
        "model.thinking": _thinks(options),
        "model.earlier_thoughts": _own(options).values.get("model.earlier_thoughts", "family"),
        "engine.kind": options.engine,
        "engine.deadline": options.deadline + 60,
    }
    if options.engine == "torch":
        slots = options.slots or fitting_slots(model, context, dtype, gpu)
    else:
        slots = options.slots or SLOTS
    values |= {"rollout.concurrency": slots, "engine.max_sequences": slots}
    # The preset's `auto` would be several on a CPU, whose sampler tells nothing before a completion is over.
    values["engine.processes"] = 1
    given = [f"{key}={yaml.safe_dump(value, default_flow_style=True).splitlines()[0]}" for key, value in values.items()]
    config = load_config("cpu", [*given, *options.settings])
    if config.engine.processes != 1:
        raise ConfigError("engine.processes: those processes play episodes, and a server plays none: leave it out")
    return config


def fitting_slots(model: Any, context: int, dtype: str, gpu: int | None) -> int:
    """How many conversations' keys and values fit into what memory is free beside the weights, at most ``SLOTS``.
    ConfigError if not even one does."""
    size = 4 if dtype == "float32" else 2
    head = getattr(model, "head_dim", None) or model.hidden_size // model.num_attention_heads
    one = 2 * model.num_hidden_layers * model.num_key_value_heads * head * size * context
    free = free_memory() if gpu is None else torch.cuda.mem_get_info(gpu)[0]
    free -= 2 * _weights(model) * size  # the model's own, and the engine's
    slots = int(free * (CPU_SHARE if gpu is None else GPU_SHARE) / one)
    if slots < 1:
        raise ConfigError(
            f"one conversation of {context} tokens takes {one / 2**30:.2f} GiB for keys and values, and beside the "
            f"model {max(free, 0) / 2**30:.2f} GiB are free: lower --max-context, or set --concurrency to try it"
        )
    return min(slots, SLOTS)


def _weights(model: Any) -> int:
    """About how many parameters a model of this configuration has."""
    head = getattr(model, "head_dim", None) or model.hidden_size // model.num_attention_heads
    attention = 2 * model.hidden_size * head * (model.num_attention_heads + model.num_key_value_heads)
    layer = attention + 3 * model.hidden_size * model.intermediate_size
    return int(model.num_hidden_layers * layer + model.vocab_size * model.hidden_size)


def _gpu(name: str) -> int | None:
    """The number of the GPU that a device's name means; None for a CPU, and for what is not there (whoever loads the
    model says so)."""
    if not torch.cuda.is_available() or not (name == "auto" or name.startswith("cuda")):
        return None
    _, _, number = name.partition(":")
    return int(number) if number.isdecimal() and int(number) < torch.cuda.device_count() else 0


def _thinks(options: ServeOptions) -> bool:
    """Whether the model thinks: as said, else as in the run that the checkpoint is of."""
    if options.thinking is not None:
        return options.thinking
    return bool(_own(options).values.get("model.thinking", False))


def _own(options: ServeOptions) -> OwnSettings:
    """What the checkpoint's run says of the only settings that a server takes from it."""
    return own_settings(options.checkpoint, [name for name in TAKEN if name not in THOUGHTS])


def settings_told(options: ServeOptions) -> str | None:
    """One line on what is taken from the checkpoint's run; None where nothing is."""
    own = _own(options)
    return own.describe() if own.of_run and options.thinking is None else None
