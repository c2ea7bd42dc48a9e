"""Whether a model has room for a run's episodes: all that is wrong is told at once, with the settings that get on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from muarl.basics.errors import ConfigError
from muarl.config import RunConfig
from muarl.environments.places import Places
from muarl.environments.registry import find

if TYPE_CHECKING:
    from muarl.learning.checkpoints import Policy

SPEAKING = 1.5
"""A conversation's least length that is proposed, in times what policy text and tools take."""


def check_room(config: RunConfig, places: Places, policy: Policy, *, training: bool = True) -> None:
    """Check that policy text and tools leave the agent room to speak, and that an update has room for the longest
    episode (where there is ``training``). ConfigError says all that is wrong, how much they take, and what gets on."""
    from muarl.backends.models import model_format

    taken: dict[str, int] = {}
    others = []
    try:
        chat = model_format(policy.tokenizer, config.model)
    except ConfigError as problem:
        others.append(str(problem))
    else:
        for wanted, place in zip(config.domains, places, strict=True):
            task = place.example_task(config.eval.split if not training else "train")
            taken[wanted.name] = len(chat.prompt(place.system_prompt(task), place.tools(task), []))
    most = policy.model.config.max_position_embeddings
    check_context(config, taken, most, training=training, others=others)


def check_context(
    config: RunConfig,
    taken: Mapping[str, int],
    most: int,
    *,
    training: bool = True,
    about: bool = False,
    others: list[str] | None = None,
) -> None:
    """ConfigError if a model that reads ``most`` tokens has no room for the run's episodes.

    ``taken``: by domain, tokens of policy text and tools; ``about``: estimated, of the domain that has most.
    ``others``: what else was found wrong.
    """
    longest = config.model.max_context
    problems, context, hopeless = list(others or ()), min(longest, most), False
    if longest > most:
        problems.append(f"model.max_context is {longest}, but this model reads at most {most} tokens")
    for name, tokens in taken.items():
        if tokens < min(longest, most):
            continue
        remedy = "raise it, or choose a smaller domain.size" if _has_smaller(config, name) else "raise it"
        if tokens >= most:
            hopeless = True
            remedy = f"this model reads at most {most}; take another one"
            if not find(name).is_benchmark:
                remedy += f", such as one whose vocabulary is this domain's (muarl base domain.name={name})"
        context = max(context, min(most, _power_of_two(SPEAKING * tokens)))
        of = f" of {name}" if len(config.domains) > 1 and not about else ""
        counted = f"{'about ' if about else ''}{tokens}"
        problems.append(
            f"model.max_context is {longest}, and policy text and tools{of} alone take {counted} tokens: {remedy}"
        )
    packed = config.learner.pack_tokens
    if training and packed < min(longest, most):
        problems.append(
            f"learner.pack_tokens is {packed}, and an episode may grow to {min(longest, most)} tokens "
            "(model.max_context): raise the one, or lower the other"
        )
    if not problems:
        return
    settings = [f"model.max_context={context}"] if context != longest else []
    settings += [f"learner.pack_tokens={context}"] if training and packed < context else []
    told = [f"To go on, add {' '.join(settings)} to the command"] if settings and not hopeless else []
    raise ConfigError("\n".join([*problems, *told]))


def _has_smaller(config: RunConfig, name: str) -> bool:
    sizes = find(name).sizes[1:]
    return any(domain.size in sizes for domain in config.domains if domain.name == name)


def _power_of_two(least: float) -> int:
    found = 1
    while found < least:
        found *= 2
    return found
