"""A run that is taken up again: its folder stays as it was until the work goes on.

What a resumed run is to do is laid over its own configuration, and may turn out not to fit what it holds (another seed,
another model). That shows only when a recipe looks into the folder. Were the new configuration there by then, the next
``--resume`` would go by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from muarl.episode import Episode
from muarl.errors import InfrastructureError, MuarlError
from muarl.files import write_text
from muarl.observe.rundir import RunDirectory

if TYPE_CHECKING:
    from muarl.domains.base import Task

OWN = ("status.json", "versions.json")
"""What taking up a run writes at once."""


class ResumedRun(RunDirectory):
    """An existing run's folder, to go on in.

    ``config``: written with the first row of figures or result of the resumed run, or at its end; tasks and episodes
    that are written before wait for that, too. Where a MuarlError that a person can mend comes first, the run was
    refused: the folder is then as it was, and its status what it was.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self._config, self._went_on = config, False
        self._waiting: list[Callable[[], object]] = []
        self._before = {name: _content(folder / name) for name in OWN}
        self._events = set((folder / "tensorboard").glob("*"))
        super().__init__(folder.parent, folder.name, existing="resume")

    def go_on(self) -> None:
        """From here on the folder is the resumed run's."""
        if not self._went_on:
            self._went_on = True
            self.write_config(self._config)
            for write in self._waiting:
                write()

    def log(self, values: Mapping[str, Any], *, phase: str, step: int) -> dict[str, Any]:
        """See RunDirectory; the run goes on."""
        self.go_on()
        return super().log(values, phase=phase, step=step)

    def write_episodes(self, name: str, episodes: Iterable[Episode]) -> Path:
        """See RunDirectory; written once the run goes on."""
        if self._went_on:
            return super().write_episodes(name, episodes)
        self._waiting.append(partial(super().write_episodes, name, list(episodes)))
        return self.episodes / f"{name}.jsonl"

    def write_tasks(self, tasks: Iterable[Task]) -> None:
        """See RunDirectory; written once the run goes on."""
        if self._went_on:
            super().write_tasks(tasks)
        else:
            self._waiting.append(partial(super().write_tasks, list(tasks)))

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """See RunDirectory; the run goes on."""
        self.go_on()
        super().write_summary(summary)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is None:
            self.go_on()
        super().__exit__(kind, problem, trace)
        refused = isinstance(problem, MuarlError) and not isinstance(problem, InfrastructureError)
        if refused and not self._went_on:
            self._put_back()

    def _put_back(self) -> None:
        for name, content in self._before.items():
            if content is None:
                (self.path / name).unlink(missing_ok=True)
            else:
                write_text(self.path / name, content)
        for events in set(self.tensorboard.glob("*")) - self._events:
            events.unlink(missing_ok=True)


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
