"""The mathematics of a learner's steps, once for all learners: batches, log-probabilities, losses, updates and metrics.

A ``Stepper`` may be one of several processes that together take one step. Each is given all samples, and asks four
questions that know how many processes there are: what is mine (``_micro``), what does the model say (``_scores``), and
what do all of us have together (``_combined`` for metrics, ``_summed`` for numbers). Everything else is the same in
every process. Since losses hold the step's global normalisers, gradients over micro-batches and processes just add up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from muarl.learning.losses import (
    Totals,
    correct,
    cross_entropy_loss,
    gap_summary,
    kl_loss,
    kl_values,
    logprob_gap,
    merge_metrics,
    policy_gradient_loss,
    sequence_sums,
)
from muarl.learning.optimizer import ScheduledOptimizer
from muarl.learning.packing import Batch, Rows, Sample, episode_numbers
from muarl.learning.settings import LearnerConfig
from muarl.models.path import ModelPath


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Of n targets, in row-major order of the rows' targets."""

    logprobs: Tensor
    """float32 [n], with gradient where enabled."""
    entropy: Tensor | None
    """float32 [n] in nats, detached, or None."""


def selected_logprobs(
    path: ModelPath, rows: Rows, *, temperature: float = 1.0, entropy: bool = False, recompute: bool = False
) -> TokenScores:
    """log softmax(logits / temperature) of each target token, given what precedes it in its own document.

    Always float32, whatever the weights' type. ``recompute`` trades time for memory.
    """
    logprobs, spread = path.token_logprobs(
        rows.ids,
        rows.positions,
        rows.documents,
        rows.targets,
        temperature,
        entropy=entropy,
        recompute=recompute,
        layout=rows.layout,
    )
    return TokenScores(logprobs, spread.detach() if entropy else None)


Metrics = dict[str, float]


class Stepper:
    """``sft_step`` and ``policy_step`` for whoever holds weights; see this module's docstring."""

    config: LearnerConfig
    optimizer: ScheduledOptimizer

    def __init__(self, config: LearnerConfig) -> None:
        self.config = config
        self._version = 0
        self._random = random.Random(config.seed)

    @property
    def version(self) -> int:
        return self._version

    @property
    def updates(self) -> int:
        """Optimiser updates so far."""
        return self.optimizer.updates

    @property
    def device(self) -> torch.device:
        raise NotImplementedError

    # ---- the four questions, and whether there is a reference

    def _micro(self, batch: Batch, subset: Sequence[int] | None = None) -> list[Rows]:
        """This process's micro-batches over the batch's samples (or the ``subset`` of their indices); every process
        has the same number of them."""
        raise NotImplementedError

    def _scores(self, rows: Rows, *, temperature: float, entropy: bool = False, reference: bool = False) -> TokenScores:
        """The policy's (or the reference model's) log-probabilities of the rows' targets."""
        raise NotImplementedError

    def _combined(self, metrics: Mapping[str, float]) -> Metrics:
        """The metrics of all processes, combined as ``merge_metrics`` does."""
        return dict(metrics)

    def _summed(self, values: Tensor) -> Tensor:
        """The sum over all processes, entry by entry."""
        return values

    @property
    def _has_reference(self) -> bool:
        raise NotImplementedError

    @property
    def _start_at_hand(self) -> bool:
        """Whether ``_scores`` can answer for the start weights at no memory worth speaking of: they are the reference,
        the model without its adapters, or a small model's copy."""
        return self._has_reference

    # ---- the steps

    def sft_step(self, samples: Sequence[Sample]) -> Metrics:
        """One update on demonstrations: weighted cross-entropy at temperature 1, one global mean over the whole batch.

        Metrics: ``nll`` (weighted), ``agent_nll`` (tokens of weight 1), and those of every update: grad_norm, lr,
        nonfinite, tokens, padding, loss_tokens, updates, seconds, tokens_per_second. ``{"skipped": 1}`` if there was
        nothing to learn from (and nothing changed).
        """
        started = time.perf_counter()
        batch = Batch.of(samples).to(self.device)
        if not batch.weights.numel():
            return {"skipped": 1.0}
        micro = self._micro(batch)
        totals = Totals.of(batch.weights, batch.sequences)
        agent = (batch.weights == 1.0).float()
        agent_share = agent / agent.sum().clamp_min(1.0)
        parts = []
        for rows in micro:
            scores = self._scores(rows, temperature=1.0)
            output = cross_entropy_loss(scores.logprobs, batch.weights[rows.index], totals, agent_share[rows.index])
            output.loss.backward()
            parts.append(output.metrics)
        metrics = self._combined(_floats(merge_metrics(parts))) | self.optimizer.step()
        return self._finish([metrics], micro, started)

    def policy_step(self, samples: Sequence[Sample]) -> Metrics:
        """Update on scored episodes, ``minibatches`` x ``epochs`` times.

        Metrics: those of the losses (see ``losses``) averaged over the updates (``*_max`` and ``*_min``: over all),
        ``loss`` (the whole objective), ``entropy`` (nats, loss tokens only), ``logprob_gap_mean`` / ``_max`` between
        sampler and learner at the weights before the step, and the same as ``sft_step`` about updates and speed.
        Without a KL term also ``kl``, ``kl_k3`` and ``kl_tokens``, see ``_start_kl``.
        ``{"skipped": 1}`` if no sample carries loss. ValueError if samples bring no log-probabilities.
        """
        started = time.perf_counter()
        policy = self.config.policy
        batch = Batch.of(samples).to(self.device)
        if not batch.weights.numel():
            return {"skipped": 1.0}
        if not batch.has_logprobs:
            raise ValueError("policy_step needs the sampler's log-probabilities on every sample")
        everything = self._micro(batch)
        once = policy.epochs == 1 and policy.minibatches == 1
        reference = self._flat(batch, everything, reference=True) if self._has_reference else None
        old: Tensor | None = batch.logprobs
        gap: Metrics = {}
        if policy.old_logprobs == "recompute":
            # With a single update its own forward pass already has the weights before the step: no extra pass.
            old = None if once else self._flat(batch, everything)
            if old is not None:
                totals = Totals.of(batch.weights, batch.sequences, batch.episodes)
                gap = _floats(logprob_gap(old, batch.logprobs, batch.weights, totals))
        start_kl = self._start_kl(batch, old) if reference is None else {}
        updates: list[Metrics] = []
        for _ in range(policy.epochs):
            for subset in self._minibatches(batch):
                micro = everything if once else self._micro(batch, subset)
                measured = self._policy_update(batch, subset, micro, old, reference)
                # Only the first update sees the sampler's weights, so later ones say nothing about the gap.
                own_gap = {k: measured.pop(k) for k in list(measured) if k.startswith("logprob_gap")}
                gap = gap or own_gap
                updates.append(measured)
        return self._finish(updates, everything, started, policy.epochs) | gap_summary(gap) | start_kl

    def _start_kl(self, batch: Batch, old: Tensor | None) -> Metrics:
        """How far the policy that sampled is from the start weights, in nats a token, on ``config.start_kl`` episodes
        that lie evenly in the batch: one forward pass over those. It draws nothing at random and moves nothing, so
        training is the same with it. ``old``: see ``_policy_update``.

        ``kl`` (k1) and ``kl_k3``: weighted means over ``kl_tokens`` loss tokens. Empty where there is nothing to ask.
        """
        if not self.config.start_kl or not self._start_at_hand:
            return {}
        numbers = episode_numbers(batch.samples)
        carrying = [i for i in range(len(numbers)) if batch.starts[i + 1] > batch.starts[i]]
        episodes = list(dict.fromkeys(numbers[i] for i in carrying))
        count = min(self.config.start_kl, len(episodes))
        chosen = {episodes[n * len(episodes) // count] for n in range(count)}
        subset = [i for i in carrying if numbers[i] in chosen]
        micro = self._micro(batch, subset)
        start = self._flat(batch, micro, reference=True)
        if old is None:
            old = self._flat(batch, micro)
        index = torch.cat([torch.arange(batch.starts[i], batch.starts[i + 1]) for i in subset]).to(self.device)
        k1, k3 = kl_values(old[index], start[index])
        weights = batch.weights[index]
        whole = weights.sum().clamp_min(1e-12)
        means = {"kl": (weights * k1).sum() / whole, "kl_k3": (weights * k3).sum() / whole}
        return _floats(means) | {"kl_tokens": float(len(index))}

    def _policy_update(
        self, batch: Batch, subset: Sequence[int], micro: list[Rows], old: Tensor | None, reference: Tensor | None
    ) -> Metrics:
        """One optimiser update over ``micro``, this process's part of ``subset``. ``old`` and ``reference`` are flat
        over the whole batch; ``old`` None means the policy as it is now."""
        policy = self.config.policy
        index = torch.cat([torch.arange(batch.starts[i], batch.starts[i + 1]) for i in subset]).to(self.device)
        episodes = None if batch.episodes is None else batch.episodes[index]
        totals = Totals.of(batch.weights[index], batch.sequences[index], episodes)
        sums = None if episodes is None else sequence_sums(batch.weights[index], episodes)
        parts: list[dict[str, Tensor]] = []
        for rows in micro:
            at = rows.index
            scores = self._scores(
                rows, temperature=policy.temperature, entropy=self.config.entropy or policy.entropy_coef != 0
            )
            logprobs, weights, sequences = scores.logprobs, batch.weights[at], batch.sequences[at]
            whole = None if sums is None or batch.episodes is None else sums[batch.episodes[at]]
            before = logprobs.detach() if old is None else old[at]
            factor, corrected = correct(policy, before, batch.logprobs[at], weights, sequences, totals)
            advantages = batch.advantages[at]
            if policy.entropy_coef and scores.entropy is not None:
                advantages = advantages - policy.entropy_coef * (before + scores.entropy)
            output = policy_gradient_loss(
                logprobs,
                before,
                advantages,
                weights,
                sequences,
                totals,
                policy,
                factor=factor,
                whole=whole,
            )
            loss, metrics = output.loss, output.metrics | corrected
            if reference is not None:
                divergence = kl_loss(
                    logprobs,
                    reference[at],
                    weights,
                    sequences,
                    totals,
                    policy,
                    old_logprobs=before if policy.kl_importance else None,
                    whole=whole,
                )
                loss = loss + policy.kl_coef * divergence.loss
                metrics |= divergence.metrics
            loss.backward()
            metrics |= {"loss": loss.detach()} | logprob_gap(logprobs, batch.logprobs[at], weights, totals)
            if scores.entropy is not None:
                metrics["entropy"] = (weights * scores.entropy).sum() / totals.weight
            parts.append(metrics)
        return self._combined(_floats(merge_metrics(parts))) | self.optimizer.step()

    def _minibatches(self, batch: Batch) -> list[list[int]]:
        """The samples that carry loss, in ``minibatches`` random parts of nearly equal size; the same parts in every
        process. The segments of an episode stay together."""
        of: dict[int, list[int]] = {}
        for i, episode in enumerate(episode_numbers(batch.samples)):
            if batch.starts[i + 1] > batch.starts[i]:
                of.setdefault(episode, []).append(i)
        chosen = list(of.values())
        count = min(self.config.policy.minibatches, len(chosen))
        if count > 1:
            self._random.shuffle(chosen)
        return [[i for episode in chosen[k::count] for i in episode] for k in range(count)]

    @torch.no_grad()
    def _flat(self, batch: Batch, micro: list[Rows], *, reference: bool = False) -> Tensor:
        """The model's log-probabilities of all the batch's targets, in the batch's flat order."""
        flat = torch.zeros_like(batch.logprobs)
        for rows in micro:
            scores = self._scores(rows, temperature=self.config.policy.temperature, reference=reference)
            flat[rows.index] = scores.logprobs
        return self._summed(flat)

    def _finish(self, updates: list[Metrics], micro: list[Rows], started: float, passes: int = 1) -> Metrics:
        """Average the updates' metrics, count the version, and add sizes and speed (``passes`` over ``micro``)."""
        metrics: Metrics = {}
        for name in updates[0]:
            values = [u[name] for u in updates]
            if name.endswith("_max"):
                metrics[name] = max(values)
            elif name.endswith("_min"):
                metrics[name] = min(values)
            else:
                metrics[name] = sum(values) / len(values)
        if any(not u["nonfinite"] for u in updates):
            self._version += 1
        sizes = [sum(r.tokens for r in micro), sum(r.places for r in micro), sum(r.index.numel() for r in micro)]
        tokens, places, targets = self._summed(torch.tensor(sizes, dtype=torch.float64)).tolist()
        seconds = time.perf_counter() - started
        return metrics | {
            "tokens": tokens,
            "padding": max(0.0, 1.0 - tokens / places),
            "shared": max(0.0, 1.0 - places / tokens),
            "loss_tokens": targets,
            "updates": float(len(updates)),
            "seconds": seconds,
            "tokens_per_second": tokens * passes / seconds,
        }


def _floats(metrics: Mapping[str, Tensor]) -> Metrics:
    return {name: float(value) for name, value in metrics.items()}
