"""A run that is resumed: its folder stays as it was until the work continues.

What a resumed run is to do is laid over its own configuration, and may turn out not to fit what it holds (another seed,
another model). That shows only when a recipe looks into the folder. Were the new configuration there by then, the next
``--resume`` would go by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import BudgetError, CheckpointError, InfrastructureError, MuarlError, loses_learner
from muarl.basics.files import append_line, drop_broken_tail, write_text
from muarl.basics.system import versions
from muarl.learning.retention import newest_whole, set_aside, tidy
from muarl.observe.rundir import RunDirectory, without_secrets
from muarl.observe.status import now
from muarl.types.episode import Episode

if TYPE_CHECKING:
    from muarl.domains.tasks import Task

OWN = ("status.json", "versions.json")
"""What taking up a run writes at once."""
HISTORY = "resumes.jsonl"
"""One line for each time that a run continued."""


class ResumedRun(RunDirectory):
    """An existing run's folder, to continue in.

    ``config``: written with the first row of figures or result of the resumed run, or at its end; tasks and episodes
    that are written before wait for that, too. Where a MuarlError that the user can fix comes first, the run was
    refused: the folder is then as it was, and its status what it was. ``command``: see RunDirectory. ``changed``: the
    settings that are others than they were, for the history of resumptions.
    """

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        *,
        command: str | None = None,
        changed: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self._went_on = False
        self._lock = None
        self.path = folder
        self.hold()
        self._config, self._changed = config, changed or {}
        self._waiting: list[Callable[[], object]] = []
        self._before = {name: _content(folder / name) for name in OWN}
        self._events = set((folder / "tensorboard").glob("*"))
        held = self._lock
        super().__init__(folder.parent, folder.name, existing="resume", command=command)
        self._lock = held

    def later(self, action: Callable[[], object]) -> None:
        """Do something to the folder once the run continues."""
        if self._went_on:
            action()
        else:
            self._waiting.append(action)

    def go_on(self) -> None:
        """From here on the folder is the resumed run's."""
        if not self._went_on:
            self._went_on = True
            self.write_config(self._config)
            for write in self._waiting:
                write()
            self._remember()

    def _remember(self) -> None:
        """A line of the history: when, after which row of figures, with what changed, by which version."""
        rows = self.read_metrics()
        after = {name: rows[-1].get(name) for name in ("phase", "step")} if rows else None
        software = versions()
        line = {"at": now(), "after": after, "changed": without_secrets(self._changed)}
        line |= {name: software[name] for name in ("muarl", "git") if name in software}
        drop_broken_tail(self.path / HISTORY)
        append_line(self.path / HISTORY, line)

    def log(self, values: Mapping[str, Any], *, phase: str, step: int) -> dict[str, Any]:
        """See RunDirectory; the run continues."""
        self.go_on()
        return super().log(values, phase=phase, step=step)

    def write_episodes(self, name: str, episodes: Iterable[Episode]) -> Path:
        """See RunDirectory; written once the run continues."""
        if self._went_on:
            return super().write_episodes(name, episodes)
        self._waiting.append(partial(super().write_episodes, name, list(episodes)))
        return self.episodes / f"{name}.jsonl"

    def write_tasks(self, tasks: Iterable[Task]) -> None:
        """See RunDirectory; written once the run continues."""
        self.later(partial(super().write_tasks, list(tasks)))

    def rewind(self, steps: Mapping[str, int] | None = None, episodes: Callable[[str], bool] | None = None) -> None:
        """See RunDirectory; done once the run continues."""
        self.later(partial(super().rewind, steps, episodes))

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """See RunDirectory; the run continues."""
        self.go_on()
        super().write_summary(summary)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is None:
            self.go_on()
        held, self._lock = self._lock, None
        super().__exit__(kind, problem, trace)
        refused = isinstance(problem, MuarlError) and not isinstance(problem, (InfrastructureError, BudgetError))
        if refused and not self._went_on:
            self._put_back()
        self._lock = held
        self.let_go()

    def _put_back(self) -> None:
        for name, content in self._before.items():
            if content is None:
                (self.path / name).unlink(missing_ok=True)
            else:
                write_text(self.path / name, content)
        for events in set(self.tensorboard.glob("*")) - self._events:
            events.unlink(missing_ok=True)


def resume_point(root: Path, say: Callable[[str], None]) -> Path | None:
    """The newest whole checkpoint under ``root``; None if there is none at all. Newer ones that are damaged are passed
    over, and ``say`` is told. CheckpointError if all are damaged."""
    newest, problems = newest_whole(root)
    if newest is None and problems:
        raise CheckpointError(
            f"{problems[0]}. No checkpoint in {root} is whole: put a copy back, or remove those folders to begin this "
            "stage again"
        )
    for problem in problems:
        say(f"{problem}. Continuing from {newest}.")
    return newest


def go_back(
    run: RunDirectory,
    root: Path,
    checkpoint: Path | None,
    steps: Mapping[str, int],
    episodes: Callable[[str], bool] | None = None,
) -> None:
    """The run continues from ``checkpoint`` of those under ``root`` (None: from the beginning): what it wrote after
    that goes, since it is written anew. For ``steps`` and ``episodes`` see ``RunDirectory.rewind``."""

    def back() -> None:
        tidy(root)
        set_aside(root, checkpoint)

    if isinstance(run, ResumedRun):
        run.later(back)
    else:
        back()
    run.rewind(steps, episodes)


def save_last(problem: BaseException, step: int, save: Callable[[], None], say: Callable[[str], None]) -> None:
    """``problem`` ends a run: ``save`` the checkpoint of its ``step`` finished steps, unless there are none, or the
    learner was lost. What keeps it from that is told by ``say``, and does not hide why the run ends."""
    if not step or loses_learner(problem):
        return
    try:
        save()
    except MuarlError as failure:
        say(f"No checkpoint of step {step} could be saved: {failure}")


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
