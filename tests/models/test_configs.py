"""A checkpoint means the same model, whichever release of transformers wrote it and whichever reads it."""

from __future__ import annotations

import pytest
import torch

from muarl.models import configs
from support.tiny_qwen3 import tiny

SCALED = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 256}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"rope_theta": 5e5}, {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}),
        ({"rope_theta": 5e5, "rope_scaling": SCALED}, {"rope_parameters": {"rope_theta": 5e5, **SCALED}}),
    ],
)
def test_rotary_positions_are_the_same_under_older_and_newer_names(
    older: dict[str, object], newer: dict[str, object]
) -> None:
    old, new = tiny(**older), tiny(**newer)
    assert configs.rotary_base(old.config) == configs.rotary_base(new.config) == 5e5
    torch.testing.assert_close(old.model.rotary_emb.inv_freq, new.model.rotary_emb.inv_freq, rtol=0, atol=0)
    assert not torch.equal(old.model.rotary_emb.inv_freq, tiny().model.rotary_emb.inv_freq), "not without effect"


def test_an_older_release_is_told_by_the_names_it_knows() -> None:
    found = configs._with_older_names(
        {"hidden_size": 8, "rope_parameters": {"rope_theta": 5e5, "partial_rotary_factor": 0.5, **SCALED}}
    )
    assert found == {"hidden_size": 8, "rope_theta": 5e5, "partial_rotary_factor": 0.5, "rope_scaling": SCALED}
    plain = configs._with_older_names({"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}})
    assert plain == {"rope_theta": 5e5}


@pytest.mark.parametrize("tied", [True, False])
def test_an_empty_model_has_the_parameters_of_a_whole_one(tied: bool) -> None:
    whole = tiny(tied=tied)
    empty = configs.empty_model(whole.config)
    assert [(n, p.shape) for n, p in empty.named_parameters()] == [(n, p.shape) for n, p in whole.named_parameters()]
    assert all(p.device.type == "meta" for p in empty.parameters())
