"""A task that is drawn late in a training run, and whose gold action fails: the run ends where it can go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from muarl.domains.base import Action, Task
from muarl.errors import DataError
from muarl.learning.checkpoints import latest_checkpoint
from muarl.observe.progress import Progress
from muarl.recipes import preflight, rl
from muarl.recipes.common import load_model, open_logger, open_run
from muarl.recipes.setting import make_setting


@pytest.mark.parametrize("asynchrony", ["synchronous", "one_step_off"])
def test_training_ends_with_a_checkpoint(
    asynchrony: str, configure: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "AHEAD", 0)  # the run is longer than what is looked at beforehand
    config = configure("rl.steps=4", f"rl.asynchrony={asynchrony}", "rl.checkpoint_every=0")
    made = make_setting(config)

    def draw(split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        tasks = made.draw(split, count, seed, start)
        wrong = (Action("cancel_order", {}),)
        return [replace(t, id=f"late-{start + n}", actions=wrong) if start + n >= 4 else t for n, t in enumerate(tasks)]

    own = replace(made, draw=draw, generated=None)
    policy = load_model(config.model)
    with open_run(config) as run, Progress() as progress, open_logger(config, run) as logger:
        with pytest.raises(DataError, match=r"task late-\d+: actions\[0\], cancel_order\(\{\}\): unknown tool"):
            rl.train(config, own, policy, run, logger, progress)
        saved = latest_checkpoint(run.checkpoints / "rl")
    assert saved is not None
    assert asynchrony != "synchronous" or saved.name == "step-000002"
