"""The checkpoints that come with muarl fit the domains that they were made on."""

from __future__ import annotations

import pytest

from muarl.backends.checkpoint_names import SHIPPED, checkpoint_folder, shipped_with
from muarl.config import load_config
from muarl.config.load import preset_names
from muarl.environments.registry import find
from muarl.learning.checkpoints import load_policy
from muarl.recipes.tiny import pieces_of
from support.environments import MADE

MIB = 1 << 20


def test_each_is_of_a_generated_domain_and_they_are_small():
    assert {shipped_with(spec) for spec in SHIPPED} <= set(MADE)
    folders = {checkpoint_folder(spec) for spec in SHIPPED}
    assert sum(f.stat().st_size for folder in folders for f in folder.iterdir()) < 16 * MIB


@pytest.mark.parametrize("spec", SHIPPED)
def test_its_words_are_those_of_its_domain(spec):
    """A world whose words have changed needs another base: ``muarl base domain.name=...``."""
    tokenizer = load_policy(checkpoint_folder(spec)).tokenizer
    vocabulary = tokenizer.get_added_vocab()
    missing = [p for p in pieces_of(find(shipped_with(spec))) if p not in vocabulary]
    assert not missing


@pytest.mark.parametrize("preset", preset_names())
def test_presets_name_a_checkpoint_that_fits(preset):
    config = load_config(preset, [])
    if config.model.checkpoint in SHIPPED:
        assert shipped_with(config.model.checkpoint) == config.domain.name
