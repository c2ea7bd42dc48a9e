from __future__ import annotations

import pytest
import torch
from torch import nn

from muarl.errors import CheckpointError
from muarl.models.weights import copy_weights


def test_foreign_weights_are_copied_and_own_ones_left() -> None:
    model = nn.Linear(2, 2)
    before = model.bias.detach().clone()
    copy_weights([("weight", torch.ones(2, 2)), ("bias", model.bias.detach())], model)
    assert torch.equal(model.weight, torch.ones(2, 2))
    assert torch.equal(model.bias, before)


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(CheckpointError, match="'wait'"):
        copy_weights([("wait", torch.ones(2, 2))], nn.Linear(2, 2))
    with pytest.raises(CheckpointError, match="'weight'"):
        copy_weights([("weight", torch.ones(2, 3))], nn.Linear(2, 2))
