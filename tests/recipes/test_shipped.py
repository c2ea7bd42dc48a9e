"""The checkpoints that come with muarl fit the domains that they were made on."""

from __future__ import annotations

import pytest

from muarl.backends import checkpoint_names
from muarl.backends.checkpoint_names import SHIPPED, checkpoint_folder, is_shipped, shipped_with
from muarl.basics.errors import CheckpointError
from muarl.config.load import load_config, preset_names
from muarl.environments.registry import find
from muarl.learning.checkpoints import load_policy
from muarl.recipes.tiny import pieces_of
from support.environments import MADE

MIB = 1 << 20
AGENT_TO_BE_NAMED = {"banking-bm25-grep"}
"""Presets of evaluations that say nothing of the agent."""
INSTALLED = [spec for spec in SHIPPED if is_shipped(spec)]


def test_each_is_of_generated_domains_and_they_are_small():
    assert {name for spec in SHIPPED for name in shipped_with(spec)} <= set(MADE)
    folders = {checkpoint_folder(spec) for spec in INSTALLED}
    assert sum(f.stat().st_size for folder in folders for f in folder.iterdir()) < 20 * MIB


def test_the_preset_of_a_checkpoint_that_is_not_there_can_make_it(monkeypatch, tmp_path):
    assert set(INSTALLED) == set(SHIPPED)
    monkeypatch.setattr(checkpoint_names, "_asset", lambda spec: tmp_path / spec)
    for spec in SHIPPED:
        with pytest.raises(CheckpointError, match=f"muarl base --config {SHIPPED[spec]}`"):
            checkpoint_folder(spec)


@pytest.mark.parametrize(
    "spec", [pytest.param(s, marks=pytest.mark.slow if len(shipped_with(s)) > 1 else ()) for s in INSTALLED]
)
def test_its_words_are_those_of_its_domains(spec):
    """A world whose words have changed needs another base: ``muarl base --config ...``. Of several worlds, a few pieces
    are cut where they would reach into another's values."""
    tokenizer = load_policy(checkpoint_folder(spec)).tokenizer
    vocabulary, worlds = tokenizer.get_added_vocab(), shipped_with(spec)
    for name in worlds:
        pieces = pieces_of(find(name))
        missing = [p for p in pieces if p not in vocabulary]
        assert len(missing) <= (0 if len(worlds) == 1 else 0.03 * len(pieces)), missing


@pytest.mark.parametrize("preset", sorted({*preset_names()} - AGENT_TO_BE_NAMED))
def test_presets_name_a_checkpoint_that_fits(preset):
    config = load_config(preset, [])
    if config.model.checkpoint in SHIPPED:
        assert {domain.name for domain in config.domains} <= set(shipped_with(config.model.checkpoint))
