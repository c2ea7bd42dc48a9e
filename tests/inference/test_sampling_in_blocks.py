"""How a GPU finds a row's id: first the block, then the place in it. The function itself runs anywhere."""

from __future__ import annotations

import pytest
import torch

from muarl.inference.sampling import inverse_in_blocks


@pytest.mark.parametrize("vocab", [97, 128, 5000])
def test_ids_are_those_of_the_whole_row(vocab: int) -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(60, vocab, generator=generator)
    weights[weights < 0.5] = 0.0
    weights[::2, 60:] = 0.0
    noise = torch.rand(60, generator=generator)
    mass = weights.double().cumsum(-1)
    expected = torch.searchsorted(mass, noise[:, None].double() * mass[:, -1:], right=True)[:, 0]
    assert torch.equal(inverse_in_blocks(weights, noise), expected)


@pytest.mark.parametrize("edge", [2.0**-24, 1.0 - 2.0**-24])
def test_an_id_of_no_weight_is_never_found(edge: float) -> None:
    weights = torch.rand(60, 1000, generator=torch.Generator().manual_seed(1))
    weights[weights < 0.7] = 0.0
    weights[:, 700:] = 0.0
    weights[:, :3] = 0.0
    found = inverse_in_blocks(weights, torch.full((60,), edge))
    assert bool((weights.gather(1, found[:, None]) > 0).all())
