"""``ShardedLearner``: one process of several that together hold one policy and train it (PyTorch's FSDP2).

Every process makes the same calls with the same arguments in the same order: each step's whole list of samples, each
``save`` and ``load``, each tensor of ``weights``. Each takes its own part of the samples, balanced by tokens; all take
equally many micro-steps, since a layer's parameters are gathered from all of them. Who starts the processes and passes
them their calls is not known here: see ``workers`` for one machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from safetensors import SafetensorError
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

from muarl.basics.errors import CheckpointError, MuarlError
from muarl.learning import process_group, shards
from muarl.learning.checkpoint_files import WeightWriter, file_sum, flush, full_disk, is_disk_full, seal, whole_folder
from muarl.learning.checkpoints import check_policy, check_sums, load_tokenizer, write_config
from muarl.learning.lora import FOLDER, load_adapter, save_adapter
from muarl.learning.losses import merge_metrics
from muarl.learning.optimizer import ScheduledOptimizer
from muarl.learning.packing import Batch, Rows, idle_rows, pack, spread
from muarl.learning.release import write_release
from muarl.learning.settings import LearnerConfig
from muarl.learning.sharded_model import ShardedModel
from muarl.learning.state_files import (
    OPTIMIZER,
    LearnerProgress,
    StateReader,
    combined_fingerprint,
    global_generators,
    restore_generators,
    write_tensors,
    write_values,
)
from muarl.learning.steps import Metrics, Stepper, TokenScores
from muarl.models.adapters import base_only
from muarl.models.attention import can_share
from muarl.models.weights import as_stored

T = TypeVar("T")


class ShardedLearner(Stepper):
    """Process ``rank`` of ``world`` of a sharded learner; the ``Learner`` protocol for all of them together.

    ``checkpoint``: the folder of the start model, readable in every process; it is also the reference model of the KL
    term (with adapters that is the model without them, and no second copy). ``address``: of the group's store (see
    ``group.host_store``). The constructor returns when all processes are there and have read their shards.

    CheckpointError for a bad folder; InfrastructureError if processes are missing, or differ in version.
    """

    def __init__(
        self,
        checkpoint: Path,
        settings: LearnerConfig,
        sharding: process_group.ShardingConfig,
        *,
        rank: int,
        world: int,
        address: str,
    ) -> None:
        super().__init__(settings)
        self.rank, self.world = rank, world
        self._device = process_group.join(address, rank, world, sharding)
        checkpoint = Path(checkpoint)
        self.model_config = process_group.together(lambda: check_policy(checkpoint))
        self.tokenizer = process_group.together(lambda: load_tokenizer(checkpoint))
        mesh = init_device_mesh(self._device.type, (world,))
        precision, lora = settings.precision, settings.lora
        self.model = process_group.together(
            lambda: ShardedModel(
                checkpoint,
                mesh,
                precision=precision,
                lora=lora,
                seed=settings.seed,
                offload=sharding.offload_optimizer,
                most=_most,
            )
        )
        self.config = replace(self.config, lora=self.model.lora)
        self.reference: ShardedModel | None = None
        if settings.policy.kl_coef > 0 and lora is None:
            self.reference = process_group.together(
                lambda: ShardedModel(
                    checkpoint,
                    mesh,
                    precision=precision,
                    trained=False,
                    offload=sharding.offload_reference,
                    most=_most,
                )
            )
        self.optimizer = ScheduledOptimizer(self.model.model, settings.optimizer)
        self._start: str | None = None

    @property
    def device(self) -> torch.device:
        return self._device

    # ---- weights

    @property
    def names(self) -> list[str]:
        """The names of all parameters, tied ones once; ``weight`` gives each."""
        return list(self.model.shapes)

    def weight(self, name: str) -> Tensor:
        """One parameter, whole, as the model computes with it (in the precision), adapters merged."""
        return self.model.gathered(name, self.model.precision)

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every parameter, named as ``Weights`` says, one after another; every process must go through them all."""
        return as_stored(((name, self.weight(name)) for name in self.names), self.model_config.model_type)

    def adapter(self) -> dict[str, Tensor]:
        """The adapter's matrices, whole, by the model's names; every process must ask."""
        return {name: shards.whole(p).cpu() for name, p in self.model.adapter().items()}

    # ---- checkpoints

    def save(
        self,
        path: Path,
        extra: Mapping[str, Any] | None = None,
        *,
        caller: tuple[tuple[Any, ...], Mapping[str, Tensor]] | None = None,
    ) -> Path:
        """Write one checkpoint folder, which any number of processes can ``load``, ``TorchLearner`` among them: the
        weights as one Hugging Face model, the optimiser's state as one file for each process.

        ``caller``: the states of Python's and PyTorch's generators to keep, where they are not this process's own.
        MuarlError if it cannot be written in one of the processes; there is then no new folder.
        """
        path = Path(path)
        python, generators = caller or (random.getstate(), global_generators(self._device))
        progress = LearnerProgress(
            self._version, self.updates, self._random.getstate(), python, self._start_sum(), dict(extra or {})
        )
        with ExitStack() as stack:
            made = self._write(path, lambda: stack.enter_context(whole_folder(path)) if self.rank == 0 else None)
            folder = Path(process_group.gather(str(made))[0])
            sums = dict(process_group.gather(self._write(path, lambda: self._write_state(folder, generators))))
            self._write_weights(path, folder)
            self._write_adapter(path, folder)
            self._write(path, lambda: self._write_rest(folder, progress, sums) if self.rank == 0 else None)
            self._write(path, lambda: stack.pop_all().close())
        return path

    def _write(self, path: Path, action: Callable[[], T]) -> T:
        """Do something in every process that may fail in one for want of room or rights; then all fail, clearly."""

        def clearly() -> T:
            try:
                return action()
            except (OSError, SafetensorError) as problem:
                if is_disk_full(problem):
                    raise full_disk(path) from problem
                raise MuarlError(f"{path}: this checkpoint could not be written: {problem}") from problem

        return process_group.together(clearly)

    @property
    def _held(self) -> torch.dtype:
        """The type that checkpoints hold weights in: that of the trained ones, so that resuming is exact."""
        return torch.float32 if self.config.lora is None else self.model.precision

    def _write_state(self, folder: Path, generators: Mapping[str, Tensor]) -> tuple[str, str]:
        """This process's tensors; the file's name, and its sum for the manifest."""
        if not folder.is_dir():
            raise CheckpointError(
                f"{folder.parent}: process {self.rank} does not see the folder that process 0 has made there: "
                "checkpoints need a folder that all machines share"
            )
        tensors = {OPTIMIZER + key: value for key, value in self.optimizer.tensors().items()}
        rows = {}
        for key, value in tensors.items():
            if value.ndim:
                place = shards.rows_of(self.model.parameters[_parameter(key)])
                rows[key] = (place.start, place.whole[0])
        tensors |= dict(generators) if self.rank == 0 else {}
        name = write_tensors(folder, tensors, rank=self.rank, world=self.world, rows=rows)
        flush(folder / name)
        return name, file_sum(folder / name)

    def _write_rest(self, folder: Path, progress: LearnerProgress, sums: Mapping[str, str]) -> None:
        write_config(folder, self.model_config, self._held)
        write_release(folder, self.tokenizer, self.config.notes.at(progress.extra))
        write_values(folder, progress.values())
        seal(folder, sums)

    def _write_weights(self, path: Path, folder: Path) -> None:
        """Process 0 writes what all gather, one tensor after another; it continues gathering if it cannot write."""
        weights = self.model.weights
        writer = WeightWriter(folder, weights.shapes, self._held)
        problem: Exception | None = None
        for names in weights.groups():
            whole = {name: self.model.gathered(name) for name in names}
            if self.rank == 0 and problem is None:
                try:
                    for part, value in weights.stored(names, whole):
                        writer.add(part, value)
                except Exception as caught:  # told to all below
                    problem = caught

        def finish() -> None:
            if problem is not None:
                raise problem
            if self.rank == 0:
                writer.finish()

        self._write(path, finish)

    def _write_adapter(self, path: Path, folder: Path) -> None:
        lora = self.config.lora
        if lora is None:
            return
        adapter = self.adapter()
        self._write(path, lambda: save_adapter(folder / FOLDER, adapter, lora) if self.rank == 0 else None)

    def load(self, path: Path) -> dict[str, Any]:
        """Continue from a checkpoint of any number of processes. Returns ``extra``. CheckpointError if it does not fit
        this learner; nothing has then changed, unless a file breaks off while it is read."""
        path = Path(path)
        start = self._start_sum()
        state, progress, adapter = process_group.together(lambda: self._checked(path, start))
        process_group.together(lambda: self._take(path, state, progress, adapter))
        self._version = progress.version
        self._random.setstate(progress.order)
        random.setstate(progress.python)
        restore_generators({n: state.read(n) for n in state.names if n.startswith("random/")}, self._device)
        return progress.extra

    def _checked(self, path: Path, start: str | None) -> tuple[StateReader, LearnerProgress, dict[str, Tensor] | None]:
        state = StateReader(path)
        self.model.weights.check(path)
        if load_tokenizer(path).get_vocab() != self.tokenizer.get_vocab():
            raise CheckpointError(f"{path / 'tokenizer.json'}: is another tokenizer than the one in use")
        progress = LearnerProgress.parse(path, state.values, start)
        moments = [name for name in state.names if name.startswith(OPTIMIZER)]
        self.optimizer.check((name.removeprefix(OPTIMIZER), state.shape(name)) for name in moments)
        check_sums(path, contents=False)  # whoever asks for it has read it all
        if self.config.lora is None:
            return state, progress, None
        shapes = {name: p.shape for name, p in self.model.adapter().items()}
        return state, progress, load_adapter(path / FOLDER, shapes, self.config.lora)

    def _take(
        self, path: Path, state: StateReader, progress: LearnerProgress, adapter: dict[str, Tensor] | None
    ) -> None:
        self.optimizer.load(self._entries(state), progress.updates)
        if self.config.lora is None:
            self.model.read(path)
        elif adapter is not None:
            self.model.take_adapter(adapter)

    def _entries(self, state: StateReader) -> Iterator[tuple[str, Tensor]]:
        """This process's rows of the optimiser's state, read one after another."""
        for name in state.names:
            if name.startswith(OPTIMIZER):
                rows = shards.rows_of(self.model.parameters[_parameter(name)])
                yield name.removeprefix(OPTIMIZER), state.read(name, rows.start, rows.stop)

    def _start_sum(self) -> str | None:
        """See ``TorchLearner``: the fingerprint of the reference, or of the base under an adapter."""
        model = self.model if self.config.lora is not None else self.reference
        if model is not None and self._start is None:
            parts = process_group.gather(model.sums())
            self._start = combined_fingerprint({name: sum(part[name] for part in parts) for name in parts[0]})
        return self._start

    def close(self) -> None:
        """Leave the group."""
        process_group.leave()

    # ---- what the steps ask

    @property
    def _has_reference(self) -> bool:
        return self.config.policy.kl_coef > 0

    @property
    def _start_at_hand(self) -> bool:
        return self._has_reference or self.config.lora is not None

    def _micro(self, batch: Batch, subset: Sequence[int] | None = None) -> list[Rows]:
        c = self.config
        share = self.model.support.prefix_sharing and can_share(batch.weights)
        mine = spread(batch, self.world, subset, share=share)[self.rank]
        rows = process_group.together(
            lambda: pack(
                batch,
                token_budget=c.token_budget,
                strategy=c.packing,
                row_length=c.row_length,
                subset=mine,
                share=share,
            )
        )
        rows += [idle_rows() for _ in range(max(process_group.gather(len(rows))) - len(rows))]
        return [r.to(self._device) for r in rows]

    def _scores(self, rows: Rows, *, temperature: float, entropy: bool = False, reference: bool = False) -> TokenScores:
        model = self.reference if reference and self.reference is not None else self.model
        with base_only() if reference and self.reference is None else nullcontext():
            logprobs, spread_out = model.module(
                rows.ids,
                rows.positions,
                rows.documents,
                rows.targets,
                temperature,
                entropy=entropy,
                recompute=self.config.recompute,
                layout=rows.layout,
            )
        return TokenScores(logprobs, spread_out.detach() if entropy else None)

    def _flat(self, batch: Batch, micro: list[Rows], *, reference: bool = False) -> Tensor:
        flat = super()._flat(batch, micro, reference=reference)
        self.model.forget()
        return flat

    def _combined(self, metrics: Mapping[str, float]) -> Metrics:
        parts = [
            {k: torch.tensor(v, dtype=torch.float64) for k, v in m.items()} for m in process_group.gather(dict(metrics))
        ]
        return {name: float(value) for name, value in merge_metrics(parts).items()}

    def _summed(self, values: Tensor) -> Tensor:
        dist.all_reduce(values)
        return values


def _most(number: int) -> int:
    """The largest of the processes' numbers. All must ask together."""
    largest = torch.tensor(number)
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    return int(largest)


def _parameter(key: str) -> str:
    """The parameter's name in "optimizer/<parameter>/<entry>"."""
    return key.removeprefix(OPTIMIZER).rpartition("/")[0]
