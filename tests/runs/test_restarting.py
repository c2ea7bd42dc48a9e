"""A run that lost its learner is taken up again, as often as it may be and only if that can help."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.basics.errors import InfrastructureError
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.runs.context import Attempt, with_restarts

FOLDER = Path("runs/x")


class Run:
    """Loses its learner in the first ``losses`` tries, each after ``steps`` steps."""

    def __init__(self, losses: int, *, steps: int = 1, boundary: str = "learner", folder: Path | None = FOLDER) -> None:
        self.losses, self.steps, self.boundary, self.folder = losses, steps, boundary, folder
        self.tried: list[RunConfig] = []

    def __call__(self, config: RunConfig, attempt: Attempt) -> Path:
        self.tried.append(config)
        attempt.folder = self.folder
        for step in range(self.steps):
            attempt.step(step, None)
        if len(self.tried) <= self.losses:
            raise InfrastructureError("learner 0 died", boundary=self.boundary, retryable=False)
        return FOLDER


def test_it_goes_on_in_the_folder_that_was_begun(caplog: pytest.LogCaptureFixture) -> None:
    config, run = load_config("quickstart"), Run(2)
    assert with_restarts(config, run) == FOLDER
    assert [c.resume for c in run.tried] == [None, FOLDER, FOLDER]
    assert all(c.model_copy(update={"resume": None}) == config for c in run.tried), "nothing else has changed"
    assert caplog.text.count("learner 0 died") == 2


@pytest.mark.parametrize(
    ("run", "tries"),
    [
        (Run(3), 3),  # once too often
        (Run(1, steps=0), 1),  # it would come again
        (Run(1, boundary="agent"), 1),
        (Run(1, folder=None), 1),
    ],
)
def test_it_ends_where_that_cannot_help(run: Run, tries: int) -> None:
    with pytest.raises(InfrastructureError, match="learner 0 died"):
        with_restarts(load_config("quickstart"), run)
    assert len(run.tried) == tries


def test_it_need_not_be_tried() -> None:
    run = Run(1)
    with pytest.raises(InfrastructureError):
        with_restarts(load_config("quickstart", ["learner.restarts=0"]), run)
    assert len(run.tried) == 1
