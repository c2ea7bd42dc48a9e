"""Who holds the weights and moves them: the ``Learner`` protocol, and ``TorchLearner`` for one process.

A learner sees token ids, loss weights, log-probabilities and advantages; it knows nothing of domains or conversations.
"""

from __future__ import annotations

import copy
import hashlib
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from muarl.errors import CheckpointError, ConfigError
from muarl.learning.checkpoints import TrainerState, load_policy, load_trainer_state, save_policy
from muarl.learning.forward import TokenScores, can_share_prefixes, selected_logprobs
from muarl.learning.losses import (
    Aggregation,
    KLEstimator,
    Ratio,
    Totals,
    cross_entropy_loss,
    kl_loss,
    logprob_gap,
    merge_metrics,
    policy_gradient_loss,
)
from muarl.learning.optimizer import OptimizerConfig, ScheduledOptimizer
from muarl.learning.packing import Batch, Rows, Sample, Strategy, pack

Metrics = dict[str, float]


@runtime_checkable
class Learner(Protocol):
    """Holds the policy's weights. ``version`` counts the changes of weights that samplers should see: one for each
    ``sft_step`` or ``policy_step`` that moved them, and it goes on counting through save and load."""

    @property
    def version(self) -> int: ...

    def sft_step(self, samples: Sequence[Sample]) -> Metrics: ...

    def policy_step(self, samples: Sequence[Sample]) -> Metrics: ...

    def save(self, path: Path, extra: Mapping[str, Any] | None = None) -> Path: ...

    def load(self, path: Path) -> dict[str, Any]: ...

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every parameter under its Hugging Face name, whole, one after another."""
        ...

    def close(self) -> None:
        """Let go of processes and memory."""
        ...


@dataclass(frozen=True, slots=True)
class PolicyLossConfig:
    """The policy step. Defaults are MUA-RL's published ones, except that token_mean is global over the batch.

    ``ratio`` "token" or "sequence" (GSPO); ``clip_low`` / ``clip_high``, ``dual_clip``, ``aggregation``,
    ``constant_length``: see ``losses.policy_gradient_loss``. ``kl_coef`` 0 switches the reference model off;
    ``kl_importance``: see ``losses.kl_terms``. ``temperature``: the sampling temperature, at which all
    log-probabilities are taken. ``old_logprobs``: "sampler" trusts the samples' own, "recompute" makes them again with
    the weights before the step. ``minibatches``: optimiser updates in one pass over the batch, each with its own
    normaliser; ``epochs``: passes.
    """

    ratio: Ratio = "token"
    clip_low: float = 0.2
    clip_high: float = 0.2
    dual_clip: float | None = 3.0
    aggregation: Aggregation = "token_mean"
    constant_length: int | None = None
    kl_coef: float = 0.001
    kl_estimator: KLEstimator = "k3"
    kl_importance: bool = False
    temperature: float = 1.0
    old_logprobs: Literal["sampler", "recompute"] = "sampler"
    epochs: int = 1
    minibatches: int = 1

    def __post_init__(self) -> None:
        if self.aggregation == "dr_grpo" and not self.constant_length:
            raise ConfigError("policy.constant_length: aggregation dr_grpo needs the number of tokens to divide by")
        if not self.temperature > 0:
            raise ConfigError(f"policy.temperature: must be above 0, got {self.temperature}")
        if self.epochs < 1 or self.minibatches < 1:
            raise ConfigError("policy.epochs and policy.minibatches must be at least 1")
        if self.old_logprobs not in ("sampler", "recompute"):
            raise ConfigError(f"policy.old_logprobs: {self.old_logprobs!r} is not one of sampler, recompute")


@dataclass(frozen=True, slots=True)
class LearnerConfig:
    """``token_budget``: places (rows x length) in one micro-batch: the memory knob. ``packing``: see ``packing.pack``.
    ``entropy``: measure it over the loss tokens of policy steps. ``precision`` "bfloat16" runs the forward pass under
    autocast while weights stay as loaded. ``recompute`` trades time for memory. ``seed`` orders the minibatches."""

    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    policy: PolicyLossConfig = field(default_factory=PolicyLossConfig)
    token_budget: int = 16384
    packing: Strategy = "sorted"
    row_length: int | None = None
    entropy: bool = True
    precision: Literal["float32", "bfloat16"] = "float32"
    recompute: bool = False
    seed: int = 0


class TorchLearner:
    """A learner in one process, on the CPU or one GPU (wherever the model is).

    ``model`` is trained in place, so a sampler that holds the same module sees every update at once. ``reference``: the
    frozen model of the KL term; by default, where ``kl_coef`` > 0, a copy of the model as it is now. To resume, build
    the learner from the same start model and ``load`` the checkpoint: the reference is then the same again, which is
    checked.
    """

    def __init__(
        self,
        model: Qwen3ForCausalLM,
        tokenizer: PreTrainedTokenizerFast,
        config: LearnerConfig | None = None,
        reference: Qwen3ForCausalLM | None = None,
    ) -> None:
        self.config = config or LearnerConfig()
        self.model = model
        self.tokenizer = tokenizer
        self.reference: Qwen3ForCausalLM | None = None
        if self.config.policy.kl_coef > 0:
            self.reference = reference or copy.deepcopy(model)
            self.reference.requires_grad_(False)
        self.optimizer = ScheduledOptimizer(model, self.config.optimizer)
        self._version = 0
        self._digest: str | None = None
        self._random = random.Random(self.config.seed)

    @property
    def version(self) -> int:
        return self._version

    @property
    def updates(self) -> int:
        """Optimiser updates so far."""
        return self.optimizer.updates

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def sft_step(self, samples: Sequence[Sample]) -> Metrics:
        """One update on demonstrations: weighted cross-entropy at temperature 1, one global mean over the whole batch.

        Metrics: ``nll`` (weighted), ``agent_nll`` (tokens of weight 1), and those of every update: grad_norm, lr,
        nonfinite, tokens, padding, loss_tokens, updates, seconds, tokens_per_second. ``{"skipped": 1}`` if there was
        nothing to learn from (and nothing changed).
        """
        started = time.perf_counter()
        batch = Batch.of(samples).to(self.device)
        micro = self._pack(batch)
        if not micro:
            return {"skipped": 1.0}
        totals = Totals.of(batch.weights, batch.sequences)
        agent = (batch.weights == 1.0).float()
        agent_share = agent / agent.sum().clamp_min(1.0)
        parts = []
        for rows in micro:
            scores = self._scores(self.model, rows, temperature=1.0)
            output = cross_entropy_loss(scores.logprobs, batch.weights[rows.index], totals, agent_share[rows.index])
            output.loss.backward()
            parts.append(output.metrics)
        metrics = _floats(merge_metrics(parts)) | self.optimizer.step()
        return self._finish([metrics], micro, started)

    def policy_step(self, samples: Sequence[Sample]) -> Metrics:
        """Update on scored episodes, ``minibatches`` x ``epochs`` times.

        Metrics: those of the losses (see ``losses``) averaged over the updates (``*_max`` and ``*_min``: over all),
        ``loss`` (the whole objective), ``entropy`` (nats, loss tokens only), ``logprob_gap_mean`` / ``_max`` between
        sampler and learner at the weights before the step, and the same as ``sft_step`` about updates and speed.
        ``{"skipped": 1}`` if no sample carries loss. ValueError if samples bring no log-probabilities.
        """
        started = time.perf_counter()
        policy = self.config.policy
        batch = Batch.of(samples).to(self.device)
        everything = self._pack(batch)
        if not everything:
            return {"skipped": 1.0}
        if not batch.has_logprobs:
            raise ValueError("policy_step needs the sampler's log-probabilities on every sample")
        once = policy.epochs == 1 and policy.minibatches == 1
        reference = self._flat(self.reference, batch, everything) if self.reference is not None else None
        old: Tensor | None = batch.logprobs
        gap: Metrics = {}
        if policy.old_logprobs == "recompute":
            # With a single update its own forward pass already has the weights before the step: no extra pass.
            old = None if once else self._flat(self.model, batch, everything)
            if old is not None:
                totals = Totals.of(batch.weights, batch.sequences)
                gap = _floats(logprob_gap(old, batch.logprobs, batch.weights, totals))
        updates: list[Metrics] = []
        for _ in range(policy.epochs):
            for subset in self._minibatches(batch):
                micro = everything if once else self._pack(batch, subset)
                measured = self._policy_update(batch, micro, old, reference)
                # Only the first update sees the sampler's weights, so later ones say nothing about the gap.
                own_gap = {k: measured.pop(k) for k in list(measured) if k.startswith("logprob_gap")}
                gap = gap or own_gap
                updates.append(measured)
        return self._finish(updates, everything, started, policy.epochs) | gap

    def save(self, path: Path, extra: Mapping[str, Any] | None = None) -> Path:
        """Write a checkpoint folder that ``load`` continues from exactly; it returns ``extra`` (JSON values)."""
        values = {
            "version": self._version,
            "updates": self.optimizer.updates,
            "reference": self._reference_digest(),
            "random": {"learner": _random_state(self._random), "python": _random_state(random)},
            "extra": dict(extra or {}),
        }
        tensors = {f"optimizer/{k}": v for k, v in self.optimizer.tensors().items()}
        tensors["random/torch"] = torch.get_rng_state()
        if self.device.type == "cuda":
            tensors["random/cuda"] = torch.cuda.get_rng_state(self.device)
        return save_policy(path, self.model, self.tokenizer, TrainerState(tensors, values))

    def load(self, path: Path) -> dict[str, Any]:
        """Continue from a checkpoint of ``save``: weights (in place), optimiser, counts and random states. Returns
        ``extra``. CheckpointError if it does not fit this learner, which is then unchanged."""
        dtype = next(self.model.parameters()).dtype
        state = load_trainer_state(path)
        loaded = load_policy(path, dtype=dtype)
        mine, theirs = dict(self.model.named_parameters()), dict(loaded.model.named_parameters())
        if mine.keys() != theirs.keys() or any(mine[n].shape != theirs[n].shape for n in mine):
            raise CheckpointError(f"{Path(path) / 'config.json'}: describes another model than the one being trained")
        if loaded.tokenizer.get_vocab() != self.tokenizer.get_vocab():
            raise CheckpointError(f"{Path(path) / 'tokenizer.json'}: is another tokenizer than the one in use")
        try:
            version, updates = int(state.values["version"]), int(state.values["updates"])
            states, extra = state.values["random"], dict(state.values["extra"])
            learner_random, python_random = _parse_random(states["learner"]), _parse_random(states["python"])
            torch_random, digest = state.tensors["random/torch"], state.values["reference"]
        except (KeyError, TypeError, ValueError) as problem:
            raise CheckpointError(f"{Path(path) / 'trainer.json'}: malformed: {problem!r}") from problem
        if self.reference is not None and digest != self._reference_digest():
            raise CheckpointError(
                f"{Path(path) / 'trainer.json'}: reference: the run's reference model was another one: "
                "resume from the same start checkpoint that the run began with"
            )
        entries = {k.removeprefix("optimizer/"): v for k, v in state.tensors.items() if k.startswith("optimizer/")}
        self.optimizer.load(entries, updates)
        with torch.no_grad():
            for name, parameter in mine.items():
                parameter.copy_(theirs[name])
        self._version = version
        self._random.setstate(learner_random)
        random.setstate(python_random)
        torch.set_rng_state(torch_random)
        if self.device.type == "cuda" and "random/cuda" in state.tensors:
            torch.cuda.set_rng_state(state.tensors["random/cuda"], self.device)
        return extra

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """The model's parameters by name, tied ones once; not copied."""
        for name, parameter in self.model.named_parameters():
            yield name, parameter.detach()

    def close(self) -> None:
        """Nothing to do: the model belongs to the caller."""

    def _policy_update(self, batch: Batch, micro: list[Rows], old: Tensor | None, reference: Tensor | None) -> Metrics:
        """One optimiser update over ``micro``. ``old`` and ``reference`` are flat over the whole batch; ``old`` None
        means the policy as it is now."""
        policy = self.config.policy
        index = torch.cat([rows.index for rows in micro])
        totals = Totals.of(batch.weights[index], batch.sequences[index])
        parts: list[dict[str, Tensor]] = []
        for rows in micro:
            at = rows.index
            scores = self._scores(self.model, rows, temperature=policy.temperature, entropy=self.config.entropy)
            logprobs, weights, sequences = scores.logprobs, batch.weights[at], batch.sequences[at]
            before = logprobs.detach() if old is None else old[at]
            output = policy_gradient_loss(
                logprobs,
                before,
                batch.advantages[at],
                weights,
                sequences,
                totals,
                aggregation=policy.aggregation,
                constant_length=policy.constant_length,
                clip_low=policy.clip_low,
                clip_high=policy.clip_high,
                dual_clip=policy.dual_clip,
                ratio=policy.ratio,
            )
            loss, metrics = output.loss, output.metrics
            if reference is not None:
                divergence = kl_loss(
                    logprobs,
                    reference[at],
                    weights,
                    sequences,
                    totals,
                    estimator=policy.kl_estimator,
                    aggregation=policy.aggregation,
                    constant_length=policy.constant_length,
                    old_logprobs=before if policy.kl_importance else None,
                )
                loss = loss + policy.kl_coef * divergence.loss
                metrics |= divergence.metrics
            loss.backward()
            metrics |= {"loss": loss.detach()} | logprob_gap(logprobs, batch.logprobs[at], weights, totals)
            if scores.entropy is not None:
                metrics["entropy"] = (weights * scores.entropy).sum() / totals.weight
            parts.append(metrics)
        return _floats(merge_metrics(parts)) | self.optimizer.step()

    def _minibatches(self, batch: Batch) -> list[list[int]]:
        """The samples that carry loss, in ``minibatches`` random parts of nearly equal size."""
        chosen = [i for i in range(len(batch.samples)) if batch.starts[i + 1] > batch.starts[i]]
        count = min(self.config.policy.minibatches, len(chosen))
        if count > 1:
            self._random.shuffle(chosen)
        return [chosen[k::count] for k in range(count)]

    def _pack(self, batch: Batch, subset: Sequence[int] | None = None) -> list[Rows]:
        c = self.config
        share = can_share_prefixes(self.model)
        rows = pack(
            batch,
            token_budget=c.token_budget,
            strategy=c.packing,
            row_length=c.row_length,
            subset=subset,
            share=share,
        )
        return [r.to(self.device) for r in rows]

    def _scores(self, model: Qwen3ForCausalLM, rows: Rows, *, temperature: float, entropy: bool = False) -> TokenScores:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
            return selected_logprobs(
                model, rows, temperature=temperature, entropy=entropy, recompute=self.config.recompute
            )

    @torch.no_grad()
    def _flat(self, model: Qwen3ForCausalLM, batch: Batch, micro: list[Rows]) -> Tensor:
        """The model's log-probabilities of all the batch's targets, in the batch's flat order."""
        flat = torch.zeros_like(batch.logprobs)
        for rows in micro:
            scores = self._scores(model, rows, temperature=self.config.policy.temperature)
            flat[rows.index] = scores.logprobs
        return flat

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
        tokens, places = sum(r.tokens for r in micro), sum(r.places for r in micro)
        seconds = time.perf_counter() - started
        return metrics | {
            "tokens": float(tokens),
            "padding": max(0.0, 1.0 - tokens / places),
            "shared": max(0.0, 1.0 - places / tokens),
            "loss_tokens": float(sum(r.index.numel() for r in micro)),
            "updates": float(len(updates)),
            "seconds": seconds,
            "tokens_per_second": tokens * passes / seconds,
        }

    def _reference_digest(self) -> str | None:
        """sha256 of the reference model's weights; None without one. Computed once: the reference never changes."""
        if self.reference is None:
            return None
        if self._digest is None:
            total = hashlib.sha256()
            for name, p in sorted(self.reference.named_parameters()):
                total.update(name.encode())
                total.update(p.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
            self._digest = total.hexdigest()
        return self._digest


def _floats(metrics: Mapping[str, Tensor]) -> Metrics:
    return {name: float(value) for name, value in metrics.items()}


def _random_state(source: Any) -> list[Any]:
    """The state of a ``random.Random`` (or of the module ``random``) as JSON can hold it."""
    version, numbers, gauss = source.getstate()
    return [version, list(numbers), gauss]


def _parse_random(state: Any) -> tuple[Any, ...]:
    version, numbers, gauss = state
    return (int(version), tuple(int(n) for n in numbers), gauss)
