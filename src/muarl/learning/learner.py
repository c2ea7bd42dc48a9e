"""Who holds the weights and moves them: the ``Learner`` protocol, and ``TorchLearner`` for one process.

A learner sees token ids, loss weights, log-probabilities and advantages; it knows nothing of domains or conversations.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from muarl.basics.errors import CheckpointError
from muarl.learning.checkpoint_files import WeightReader
from muarl.learning.checkpoints import check_policy, check_sums, load_policy, load_tokenizer, saved_policy
from muarl.learning.lora import (
    FOLDER,
    AdaptedWeights,
    attach,
    fitted,
    is_adapter,
    load_adapter,
    merged_weights,
    plain_name,
    save_adapter,
    start_value,
)
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import ScheduledOptimizer
from muarl.learning.packing import Batch, Rows, Sample, pack
from muarl.learning.settings import LearnerConfig, LoraSettings
from muarl.learning.state_files import (
    OPTIMIZER,
    LearnerProgress,
    StateReader,
    TrainerState,
    combined_fingerprint,
    global_generators,
    restore_generators,
    tensor_sum,
)
from muarl.learning.steps import Metrics, Stepper, TokenScores, selected_logprobs
from muarl.models.adapters import base_only
from muarl.models.configs import empty_model
from muarl.models.path import path_of
from muarl.models.weights import as_stored, copy_weights, family_of

__all__ = ["Learner", "LearnerConfig", "LoraSettings", "Metrics", "PolicyLossConfig", "TorchLearner"]


COPIED = 50_000_000
"""Parameters up to which a learner without a KL term keeps a copy of its start weights, to measure KL all the same."""


@runtime_checkable
class Learner(Protocol):
    """Holds the policy's weights. ``version`` counts the changes of weights that samplers should see: one for each
    ``sft_step`` or ``policy_step`` that moved them, and it continues counting through save and load."""

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
        """Release processes and memory."""
        ...


class TorchLearner(Stepper):
    """Trains a model in one process, on the CPU or one GPU (wherever the model is), by ``policy_step`` or ``sft_step``.

    ``model`` is trained in place, so a sampler that holds the same module sees every update at once. ``reference``: the
    frozen model of the KL term; by default, where ``kl_coef`` > 0, a copy of the model as it is now. With adapters
    (``config.lora``) the model stays as it is: a copy of it is adapted, which without its adapters is the reference.
    Where ``config.start_kl`` asks for it, a model of up to ``COPIED`` parameters is copied, too, but for figures alone.
    To resume, build the learner from the same start model and ``load`` the checkpoint: reference and base are then the
    same again, which is checked.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        config: LearnerConfig | None = None,
        reference: PreTrainedModel | None = None,
    ) -> None:
        super().__init__(config or LearnerConfig())
        self.model = model
        self.tokenizer = tokenizer
        self.reference: PreTrainedModel | None = None
        lora = self.config.lora
        if lora is not None:
            self.model = copy.deepcopy(model)
            lora = fitted(self.model, lora)
            self.config = replace(self.config, lora=lora)
            attach(self.model, lora)
            for name, parameter in self.adapter().items():
                parameter.data.copy_(start_value(name, parameter.shape, self.config.seed))
        if self.config.policy.kl_coef > 0 and (lora is None or reference is not None):
            self.reference = reference or copy.deepcopy(model)
            self.reference.requires_grad_(False)
        start = self.reference
        if start is None and lora is None and self.config.start_kl and _size(model) <= COPIED:
            start = copy.deepcopy(model)
            start.requires_grad_(False)
        self._has_start = start is not None or lora is not None
        self._path = path_of(self.model)
        self._reference_path = self._path if start is None else path_of(start)
        self.optimizer = ScheduledOptimizer(self.model, self.config.optimizer)
        self._digest: str | None = None

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def save(self, path: Path, extra: Mapping[str, Any] | None = None) -> Path:
        """Write a checkpoint folder that ``load`` continues from exactly; it returns ``extra`` (JSON values). With
        adapters the weights in it are merged ones, and the adapter itself lies in the folder ``adapter``."""
        states = self._random.getstate(), random.getstate()
        progress = LearnerProgress(self._version, self.updates, *states, self._start_digest(), dict(extra or {}))
        tensors = {f"{OPTIMIZER}{k}": v for k, v in self.optimizer.tensors().items()}
        state = TrainerState(tensors | global_generators(self.device), progress.values())
        notes = self.config.notes.at(extra or {})
        with saved_policy(path, self.model, self.tokenizer, state, weights=self.weights(), notes=notes) as f:
            if self.config.lora is not None:
                save_adapter(f / FOLDER, self.adapter(), self.config.lora)
        return Path(path)

    def load(self, path: Path) -> dict[str, Any]:
        """Continue from a checkpoint of ``save``: weights (in place), optimiser, counts and random states. Returns
        ``extra``. CheckpointError if it does not fit this learner, which is then unchanged."""
        path = Path(path)
        state = StateReader(path)
        theirs = self._stored_weights(path)
        if load_tokenizer(path).get_vocab() != self.tokenizer.get_vocab():
            raise CheckpointError(f"{path / 'tokenizer.json'}: is another tokenizer than the one in use")
        progress = LearnerProgress.parse(path, state.values, self._start_digest())
        entries = {k: k.removeprefix(OPTIMIZER) for k in state.names if k.startswith(OPTIMIZER)}
        self.optimizer.check((key, state.shape(name)) for name, key in entries.items())
        check_sums(path)
        self.optimizer.load(((key, state.read(name)) for name, key in entries.items()), progress.updates)
        copy_weights(theirs, self.model)
        self._version = progress.version
        self._random.setstate(progress.order)
        random.setstate(progress.python)
        restore_generators({n: state.read(n) for n in state.names if n.startswith("random/")}, self.device)
        return progress.extra

    @property
    def weights(self) -> Callable[[], Iterator[tuple[str, Tensor]]]:
        """Called, it gives the model's parameters, named as ``Weights`` says, tied ones once; not copied, unless an
        adapter is merged. With adapters it is an ``AdaptedWeights``."""
        lora, model, family = self.config.lora, self.model, family_of(self.model)
        if lora is not None:
            return AdaptedWeights(lambda: as_stored(merged_weights(model, lora), family), self.adapter, lora)
        return lambda: as_stored(((n, parameter.detach()) for n, parameter in model.named_parameters()), family)

    def close(self) -> None:
        """Nothing to do: the model belongs to the caller."""

    def adapter(self) -> dict[str, Tensor]:
        """The adapter's matrices, by the model's names; empty without one."""
        return {n: p for n, p in self.model.named_parameters() if is_adapter(n)}

    def _stored_weights(self, path: Path) -> Iterable[tuple[str, Tensor]]:
        """What a checkpoint holds of what is trained, by the names of ``weights``; read as it is taken, one tensor at a
        time, where its files hold it under these names."""
        config = check_policy(path)
        if self.config.lora is not None:
            shapes = {n: p.shape for n, p in self.adapter().items()}
            return load_adapter(path / FOLDER, shapes, self.config.lora).items()
        theirs = {n: p.shape for n, p in empty_model(config).named_parameters()}
        if {n: p.shape for n, p in self.model.named_parameters()} != theirs:
            raise CheckpointError(f"{path / 'config.json'}: describes another model than the one being trained")
        stored, family = WeightReader(path), family_of(self.model)
        names = dict(as_stored(self.model.named_parameters(), family)).keys()
        if names <= stored.shapes.keys():
            return ((name, stored.read(name)) for name in names)
        loaded = load_policy(path, dtype=next(self.model.parameters()).dtype).model
        return as_stored(loaded.named_parameters(), family)

    @property
    def _has_reference(self) -> bool:
        return self.config.policy.kl_coef > 0

    @property
    def _start_at_hand(self) -> bool:
        return self._has_start

    def _micro(self, batch: Batch, subset: Sequence[int] | None = None) -> list[Rows]:
        c = self.config
        rows = pack(
            batch,
            token_budget=c.token_budget,
            strategy=c.packing,
            row_length=c.row_length,
            subset=subset,
            share=self._path.shares_prefixes(),
        )
        return [r.to(self.device) for r in rows]

    def _scores(self, rows: Rows, *, temperature: float, entropy: bool = False, reference: bool = False) -> TokenScores:
        path = self._reference_path if reference else self._path
        adapters_off = reference and path is self._path
        with (
            torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"),
            base_only() if adapters_off else nullcontext(),
        ):
            return selected_logprobs(
                path, rows, temperature=temperature, entropy=entropy, recompute=self.config.recompute
            )

    def _start_digest(self) -> str | None:
        """Fingerprint of what must be the same again when resuming: the reference model, or the base under an adapter;
        None where there is neither. Computed once: they never change."""
        model = self.model if self.config.lora is not None else self.reference
        if model is None:
            return None
        if self._digest is None:
            named = ((n, p) for n, p in model.named_parameters() if not is_adapter(n))
            self._digest = combined_fingerprint({plain_name(n): tensor_sum(plain_name(n), p) for n, p in named})
        return self._digest


def _size(model: PreTrainedModel) -> int:
    """How many parameters there are, tied ones once."""
    return sum(parameter.numel() for parameter in model.parameters())
