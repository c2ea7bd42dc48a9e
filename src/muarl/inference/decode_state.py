"""What a running batch needs at every step, in a few tensors indexed by slot: a step has no Python work per row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from muarl.inference import sampling
from muarl.inference.base import SamplingParams

_TOKEN, _POSITION, _COUNT, _MAX, _SEED, _TOP_K, _GREEDY, _STOPS = range(8)
_FEW_STOPS = 4
_GREATEST_SCALE = 1e30
"""Of 1 / temperature: the most probable id wins, as at 0, and no logit times it leaves float32. One that did would turn
its row into NaN, whose sampled id lies outside the vocabulary, and the step would fail for the whole batch."""

Traits = tuple[bool, bool, bool]
"""Whether any running row has a temperature other than 1, is greedy, is restricted by top-k or top-p."""


class DecodeState:
    """The running rows. Host arrays say who runs and how; device tensors hold what changes with every token.

    A row's token is its next input, its position where that goes; sampled ids and log-probabilities are kept at the
    positions that they take in the context. ``slots`` counts a spare one too, where there is one: see ``restart``.
    """

    def __init__(self, slots: int, positions: int, device: torch.device) -> None:
        self._device = device
        self.widened = 0  # how often the tensors were made anew
        self._ints = torch.zeros(slots, _STOPS + _FEW_STOPS, dtype=torch.int64, device=device)
        self._floats = torch.ones(slots, 2, device=device)  # 1 / temperature, top_p
        self._ids = torch.zeros(slots, positions, dtype=torch.int64, device=device)
        self._logprobs = torch.zeros(slots, positions, device=device)
        self._runs = np.zeros(slots, dtype=bool)
        self._traits = np.zeros((slots, 3), dtype=bool)  # scaled, greedy, restricted
        self._offset = np.zeros(slots, dtype=np.int64)  # position - step, constant while a row runs
        self._step = 0
        self._stale = True
        self.traits: Traits = (False, False, False)
        self.active: Tensor = torch.zeros(0, dtype=torch.int64, device=device)
        self.highest = -1
        self._farthest = 0

    @property
    def longest(self) -> int:
        """The greatest position that any running row is about to read."""
        return self._farthest + self._step

    def start(
        self,
        slots: Sequence[int],
        prompts: Sequence[NDArray[np.int32]],
        params: Sequence[SamplingParams],
        seeds: Sequence[int],
    ) -> None:
        """Rows begin to run: their prompts are cached but for the last token, which is their first input."""
        if not slots:
            return
        most = max(len(p.stop_ids) for p in params)
        if most > self._ints.shape[1] - _STOPS:
            wider = self._ints.new_full((self._ints.shape[0], _STOPS + most), -1)
            wider[:, : self._ints.shape[1]] = self._ints
            self._ints = wider
            self.widened += 1
        ints = np.full((len(slots), self._ints.shape[1]), -1, dtype=np.int64)
        floats = np.ones((len(slots), 2), dtype=np.float32)
        for row, (slot, prompt, p, seed) in enumerate(zip(slots, prompts, params, seeds, strict=True)):
            last = len(prompt) - 1
            greedy = p.temperature == 0
            ints[row, :_STOPS] = (prompt[-1], last, 0, p.max_tokens, seed, p.top_k, greedy)
            ints[row, _STOPS : _STOPS + len(p.stop_ids)] = p.stop_ids
            floats[row] = (1.0 if greedy else min(1.0 / p.temperature, _GREATEST_SCALE), p.top_p)
            self._traits[slot] = (not greedy and p.temperature != 1, greedy, p.top_k > 0 or p.top_p < 1)
            self._offset[slot] = last - self._step
            self._runs[slot] = True
        where = torch.tensor(slots, device=self._device)
        self._ints.index_copy_(0, where, torch.from_numpy(ints).to(self._device))
        self._floats.index_copy_(0, where, torch.from_numpy(floats).to(self._device))
        self._stale = True

    def stop(self, slot: int) -> None:
        self._runs[slot] = False
        self._stale = True

    def clear(self) -> None:
        self._runs[:] = False
        self._stale = True

    def refresh(self) -> bool:
        """Bring ``active``, ``highest`` and ``longest`` up to date; True if who runs has changed. Call it before each
        step."""
        if not self._stale:
            return False
        rows = self.rows
        self.active = torch.from_numpy(rows).to(self._device)
        self.highest = int(rows[-1]) if len(rows) else -1
        self._farthest = int(self._offset[rows].max()) if len(rows) else 0
        scaled, greedy, restricted = (bool(self._traits[rows, trait].any()) for trait in range(3))
        self.traits = (scaled, greedy, restricted)
        self._stale = False
        return True

    @property
    def rows(self) -> NDArray[np.int64]:
        """The running rows' slots, in order."""
        return np.flatnonzero(self._runs)

    def inputs(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Next input ids and their positions, [n] each, of these rows."""
        chosen = self._ints[:, : _POSITION + 1].index_select(0, slots)
        return chosen[:, _TOKEN], chosen[:, _POSITION]

    def advance(self, logits: Tensor) -> list[int]:
        """Sample one id for each active row from ``logits`` [n, vocab]. Slots that finish stop and are returned."""
        over = self.move(logits, self.active, self.traits)
        return self.moved(self.active[over].tolist())

    def move(self, logits: Tensor, slots: Tensor, traits: Traits, *, look: bool = True) -> Tensor:
        """On the device: sample one id for each of these rows, and put the rows one token on. Bool [n]: who is done.

        ``look`` False: the host waits for nothing (see ``sampling.restrict``).
        """
        scaled, greedy, restricted = traits
        ints = self._ints.index_select(0, slots)
        floats = self._floats.index_select(0, slots) if scaled or restricted else self._floats
        ids, logprobs = sampling.sample(
            logits,
            sampling.uniform(ints[:, _SEED], ints[:, _COUNT]),
            scale=floats[:, 0] if scaled else None,
            greedy=ints[:, _GREEDY] != 0 if greedy else None,
            top_k=ints[:, _TOP_K] if restricted else None,
            top_p=floats[:, 1] if restricted else None,
            look=look,
        )
        ints[:, _TOKEN] = ids
        ints[:, _POSITION : _COUNT + 1] += 1
        self._ints.index_copy_(0, slots, ints)
        places = slots * self._ids.shape[1] + ints[:, _POSITION]
        self._ids.view(-1).index_copy_(0, places, ids)
        self._logprobs.view(-1).index_copy_(0, places, logprobs)
        return (ints[:, _STOPS:] == ids[:, None]).any(1).logical_or_(ints[:, _COUNT] >= ints[:, _MAX])

    def moved(self, finished: list[int]) -> list[int]:
        """On the host: the running rows are one token on, and these slots of them done; they stop and are returned."""
        self._step += 1
        if finished:
            self._runs[finished] = False
            self._stale = True
        return finished

    def restart(self, slot: int) -> None:
        """On the device: put a row back to its beginning, with no stop ids. A spare slot, which is in the place of rows
        that a step of fixed size does not need, so never runs out of positions."""
        self._ints[slot, : _COUNT + 1].zero_()

    def collect(self, slots: Sequence[int], prompts: Sequence[int]) -> list[tuple[list[int], list[float]]]:
        """Sampled ids and log-probabilities of slots that just finished, given their prompts' lengths."""
        lengths = [int(self._offset[s]) + self._step + 1 - p for s, p in zip(slots, prompts, strict=True)]
        where = torch.tensor([list(slots), list(prompts)], device=self._device)
        reach = torch.arange(max(lengths), device=self._device)
        places = where[0, :, None] * self._ids.shape[1] + (where[1, :, None] + reach).clamp_(max=self._ids.shape[1] - 1)
        ids, logprobs = self._ids.view(-1)[places].tolist(), self._logprobs.view(-1)[places].tolist()
        return [(i[:n], p[:n]) for i, p, n in zip(ids, logprobs, lengths, strict=True)]
