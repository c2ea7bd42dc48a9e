"""Operations and seconds: of a forward pass, of decoding, of an update, of a training step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muarl.planning.assumptions import Assumptions
from muarl.planning.memory import LearnerSetup, cache_per_token
from muarl.planning.models import ModelShape


def matrix_flops(shape: ModelShape, tokens: int, scored: int) -> int:
    """Operations of the matrix products in a forward pass over ``tokens`` tokens, of which ``scored`` are predicted.

    As ``models/decoder.py`` computes it: the last layer's output projection and feed-forward block, and the output
    matrix, see the scored positions only.
    """
    q, k, w = shape.query, shape.key, shape.width
    before, after = w * (q + 2 * k), q * w + shape.active_feed_forward
    return 2 * (tokens * (shape.layers * before + (shape.layers - 1) * after) + scored * (after + shape.vocab * w))


def attention_flops(shape: ModelShape, lengths: Sequence[float], *, causal: bool = True) -> float:
    """Operations of attention's two products over documents of these lengths; half of the square where ``causal``."""
    squares = sum(n * n for n in lengths) * (0.5 if causal else 1.0)
    return 4.0 * shape.layers * shape.query * squares


@dataclass(frozen=True, slots=True)
class Prefix:
    """What all documents begin with."""

    length: float = 0.0
    """Its tokens."""
    times: float = 0.0
    """How often it is computed, once in each micro-batch."""

    @property
    def tokens(self) -> float:
        """Tokens computed of it."""
        return self.length * self.times


def shared_prefix(length: float, rest: float, documents: int, budget: float, processes: int) -> Prefix:
    """The prefix of ``length`` tokens that so many documents share, ``rest`` tokens each behind it, in micro-batches of
    ``budget`` tokens over ``processes``: the learner computes it once in each of them (learning/packing.py)."""
    room = max(budget - length, rest)
    each = max(1.0, room // rest)  # documents that go into a micro-batch whole
    times = max(float(min(processes, documents)), -(-documents // each))
    return Prefix(length, times)


def update_flops(
    shape: ModelShape,
    lengths: Sequence[float],
    scored: float,
    *,
    recompute: bool = False,
    reference: bool = False,
    prefix: Prefix | None = None,
) -> float:
    """Operations of one update over documents of these lengths with ``scored`` predicted tokens: a forward pass, twice
    that backward, and the logits once more, since they are not kept; with ``recompute`` the layers once more but for
    their last product, which the backward pass does not need; a forward pass more for a ``reference`` model.

    ``prefix``: what they share, which ``lengths`` then leave out."""
    shared = prefix or Prefix()
    tokens, rows = int(sum(lengths) + shared.tokens), int(scored)
    forward = matrix_flops(shape, tokens, rows) + attention_flops(shape, lengths)
    forward += shared.times * attention_flops(shape, [shared.length])
    forward += 4.0 * shape.layers * shape.query * sum(lengths) * shared.length
    head = 2.0 * rows * shape.vocab * shape.width
    last = 2.0 * shape.width * shape.feed_forward * ((shape.layers - 1) * tokens + rows)
    if shape.mixture is not None:
        last = 0.0  # experts' products are all computed again
    return 3 * forward + head + recompute * (forward - head - last) + reference * forward


def offload_seconds(shape: ModelShape, setup: LearnerSetup, rounds: float, a: Assumptions) -> float:
    """Seconds that an update of so many ``rounds`` (micro-batches of one process) takes for what lies on the host.

    Weights go to the GPU for each forward and each backward pass, their gradients come back, and AdamW works in the
    node's memory: it reads four numbers a weight and writes three. A reference model goes up once a round.
    """
    mine = shape.parameters / setup.shards
    moved = stepped = 0.0
    if setup.offload:
        trained = shape.adapter_parameters(setup.rank, setup.targets) / setup.shards if setup.rank else mine
        held = setup.frozen_bytes if setup.rank else setup.trained_bytes
        moved += rounds * (2 * held * mine + setup.trained_bytes * trained)
        stepped = 7 * setup.trained_bytes * trained * min(setup.shards, a.gpus_per_node) / a.host_bandwidth
    if setup.reference == "host":
        moved += rounds * setup.reference_bytes * mine
    return moved / a.host_transfer + stepped


@dataclass(frozen=True, slots=True)
class ServingSetup:
    """The samplers that a plan reckons with: how many, and how much each can hold."""

    engines: int
    gpus: int
    """GPUs of each engine."""
    sequences: int
    """Sequences that an engine generates at most at once."""
    tokens: float
    """Tokens that the caches of an engine hold."""
    element_bytes: int = 2


def decode_seconds(shape: ModelShape, serving: ServingSetup, running: float, context: float, a: Assumptions) -> float:
    """Seconds for one token of each of ``running`` sequences with that much context: reading the weights (of a mixture
    the experts that are hit) and the caches from memory, or computing, whichever takes longer, and the overhead."""
    weights = shape.read_parameters(running) * serving.element_bytes
    caches = running * context * cache_per_token(shape, serving.element_bytes)
    reading = (weights + caches) / (serving.gpus * a.device.bandwidth * a.decode_share)
    computing = 2 * shape.active_parameters * running / (serving.gpus * a.device.flops * a.prefill_mfu)
    return max(reading, computing) + a.decode_overhead


@dataclass(frozen=True, slots=True)
class Rollouts:
    """What playing ``episodes`` at once on all samplers looks like."""

    episode: float
    """Mean seconds of one."""
    running: float
    """Sequences that one engine decodes at once."""
    per_second: float
    """Finished episodes."""
    tokens_per_second: float
    """Sampled, all engines together."""
    generating: float
    """Share of an episode's time in which the sampler works on it."""


def rollouts(shape: ModelShape, serving: ServingSetup, episodes: float, a: Assumptions) -> Rollouts:
    """Steady play of ``episodes`` conversations at once.

    An episode alternates between the sampler and waiting (user, tools). How many an engine decodes at once depends on
    how long a token takes, and that on how many there are: settled by repetition. Each message prefills what is new.
    """
    context = a.prompt_tokens + a.growth / 2
    waiting = a.user_replies * a.user_seconds + (a.turns - a.user_replies) * a.tool_seconds
    rate = serving.gpus * a.device.flops * a.prefill_mfu
    prefilled = a.growth - a.sampled + a.prompt_tokens / 8  # a group's prompts are alike: most of them are found cached
    prefill = (2 * shape.active_parameters * prefilled + attention_flops(shape, [a.episode_tokens])) / rate
    per_engine = episodes / serving.engines
    most = max(1.0, min(per_engine, serving.sequences, serving.tokens / a.episode_tokens))
    running = most
    step = episode = 0.0
    for _ in range(60):
        step = decode_seconds(shape, serving, running, context, a)
        # While one prompt is computed the others wait: its seconds fall on every running sequence.
        sampling = a.sampled * step + prefill * running
        share = sampling / (sampling + waiting)
        running = 0.5 * running + 0.5 * min(most, max(1.0, per_engine * share))
        episode = sampling + waiting
    sampling = episode - waiting
    finished = min(per_engine / episode, running / sampling)
    return Rollouts(
        per_engine / finished,
        running,
        finished * serving.engines,
        finished * serving.engines * a.sampled,
        sampling / episode,
    )
