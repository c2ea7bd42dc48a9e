"""What new tokens of a prefill see of the cache, in pieces."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

PIECE = 512
"""Attention is computed for so many tokens of each prompt at a time, where prompts are twice as long: later tokens see
more than earlier ones, and neither time nor masks should grow with positions that nobody sees."""


@dataclass(frozen=True, slots=True)
class VisibleSpan:
    """What columns ``first`` to ``end`` of a rectangle of new tokens see: of the first ``span`` positions those up to
    ``reach`` [n, columns]."""

    first: int
    end: int
    span: int
    reach: Tensor

    def mask(self, groups: int, dtype: torch.dtype) -> Tensor:
        """What is added to scores [n, 1, groups * columns, span]: 0 up to a column's reach, -inf beyond."""
        line = torch.zeros(2 * self.span - 1, device=self.reach.device, dtype=dtype)
        line[self.span :] = float("-inf")
        # Window i of the line is 0 in all but its last i places: so the mask is written once, and is never compared.
        windows = line.unfold(0, self.span, 1)
        which = (self.span - 1 - self.reach).repeat(1, groups)
        return windows.index_select(0, which.view(-1)).view(len(which), 1, -1, self.span)


def spans_of(starts: Tensor, lengths: Tensor, longest: int, span: int) -> list[VisibleSpan]:
    """The pieces of a rectangle of ``longest`` columns, whose row i has ``lengths[i]`` tokens for positions from
    ``starts[i]`` on. ``span``: more than every position."""
    size = PIECE if longest >= 2 * PIECE else longest
    spans = []
    for first in range(0, longest, size):
        end = min(first + size, longest)
        column = torch.arange(first, end, device=starts.device)
        # Padded queries look where the row's last real one looks; what they give is never read.
        reach = torch.minimum(starts[:, None] + column[None], (starts + lengths - 1)[:, None])
        spans.append(VisibleSpan(first, end, span if end == longest else int(reach.max()) + 1, reach))
    return spans
