"""Tasks whose gold action fails: found before a run begins, and where one is drawn late, the run ends where it can go
on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from muarl.backends.models import load_model
from muarl.basics.errors import DataError
from muarl.domains.tasks import Action, Task
from muarl.environments.configure import place_of
from muarl.environments.places import Places
from muarl.learning.checkpoint_folders import latest_checkpoint
from muarl.recipes import quickstart, rl
from muarl.runs import tasks
from muarl.runs.context import open_context

WRONG = (Action("cancel_order", {}),)


def test_a_quickstart_tells_it_before_its_cold_start(
    configure: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configure("rl.eval_every=1")
    made = place_of(config)

    def draw(split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        tasks = made.draw(split, count, seed, start)
        return [replace(t, actions=WRONG) for t in tasks] if split == "validation" else tasks

    own = Places([replace(made, draw=draw, replayed=False)])  # nobody has replayed its gold actions
    monkeypatch.setattr(quickstart, "places_of", lambda _: own)
    with pytest.raises(DataError, match=r"actions\[0\], cancel_order\(\{\}\): unknown tool"):
        quickstart.run(config)
    assert not config.runs_dir.exists()


@pytest.mark.parametrize("asynchrony", ["synchronous", "one_step_off"])
def test_training_ends_with_a_checkpoint(
    asynchrony: str, configure: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "AHEAD", 0)  # the run is longer than what is looked at beforehand
    config = configure("rl.steps=4", f"rl.asynchrony={asynchrony}", "rl.checkpoint_every=0")
    made = place_of(config)

    def draw(split: str, count: int, seed: int, start: int) -> Sequence[Task]:
        tasks = made.draw(split, count, seed, start)
        return [replace(t, id=f"late-{start + n}", actions=WRONG) if start + n >= 4 else t for n, t in enumerate(tasks)]

    own = Places([replace(made, draw=draw, replayed=False)])  # nobody has replayed its gold actions
    policy = load_model(config.model)
    with open_context(config) as context:
        with pytest.raises(DataError, match=r"task late-\d+: actions\[0\], cancel_order\(\{\}\): unknown tool"):
            rl.train(context, config, own, policy)
        saved = latest_checkpoint(context.folder.checkpoints / "rl")
    assert saved is not None
    assert asynchrony != "synchronous" or saved.name == "step-000002"
