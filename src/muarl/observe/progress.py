"""Progress that a person can read: live bars in a terminal, an occasional plain line everywhere else.

    progress = Progress()
    with progress.phase("Reinforcement learning", total=60, unit="steps") as phase:
        for step in range(60):
            ...
            phase.advance(success=0.41, turns=9.2)

``JobStages``: how far a job of several stages is. ``Tally``: what an evaluation has come to while it runs.
"""

from __future__ import annotations

import re
import textwrap
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from muarl.accounts.metrics import is_success
from muarl.observe.screen import Screen
from muarl.observe.terminal import clear
from muarl.types.episode import Episode

MIN_SECONDS = 5.0
MIN_SHARE = 0.02
"""How much of the job must have been worked off, in seconds and as a share of it, before a time is told."""


def clock(seconds: float) -> str:
    """Seconds as a person says them: 8s, 1:05, 2:03:04."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, s = divmod(whole, 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02d}:{s:02d}" if hours else f"{m}:{s:02d}"


def roughly(seconds: float) -> str:
    """Seconds no more exactly than an estimate deserves: 40 s, 9 min, 2 h 10 min."""
    if seconds < 90:
        return f"{max(10, round(seconds, -1)):.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(round(minutes, -1), 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


class JobStages:
    """The stages of a job, by name and in order, with the seconds that each took on some machine with some model.

    The pace of this machine and model is what its stages took, over what they took there. A stage that was done before
    (by a run that is resumed) tells nothing of the pace, and is behind like any other; nor does one of
    ``without_model``, which takes no longer with a larger one, and next to nothing beside it.
    """

    def __init__(self, stages: Mapping[str, float], without_model: Collection[str] = ()) -> None:
        self._names = tuple(stages)
        self._usual = tuple(0.0 if name in without_model else seconds for name, seconds in stages.items())
        self._spent = self._worked = 0.0

    def add(self, name: str, seconds: float, worked: float) -> None:
        """Note that a stage is over: its seconds, and the share of it that was worked off in them."""
        usual = self._usual[self._names.index(name)] if name in self._names else 0.0
        if usual * worked > 0:
            self._spent += seconds
            self._worked += usual * worked

    def text(self, name: str, seconds: float, done: float, worked: float) -> str:
        """Which stage this is, and the time left for it and all that follow, in words; "" for what is no stage.

        ``seconds``: since the stage began. ``done``: the share of it that is done, ``worked``: in these seconds.
        """
        if name not in self._names:
            return ""
        at = self._names.index(name)
        place = f"stage {at + 1} of {len(self._names)}"
        left = self._left(at, seconds, done, worked)
        return place if left is None else f"{place}, about {roughly(left)} left"

    def _left(self, at: int, seconds: float, done: float, worked: float) -> float | None:
        spent, usual = self._spent + seconds, self._worked + self._usual[at] * worked
        if spent < MIN_SECONDS or usual <= 0 or usual < MIN_SHARE * sum(self._usual):
            return None
        return spent / usual * (self._usual[at] * (1 - done) + sum(self._usual[at + 1 :]))


class Tally:
    """The figures beside the bar: success, failures, cost.

    Until all of the ``planned`` episodes are in, success is given by its bounds: the share of those that are in would
    mislead, since short conversations end first, and they are not like the others.
    """

    def __init__(self, planned: int, episodes: Sequence[Episode] = ()) -> None:
        self._planned = planned
        self._scored = self._right = self._failed = 0
        self._cost = 0.0
        self._why = ""
        for episode in episodes:
            self.add(episode)

    def add(self, episode: Episode) -> None:
        """Count an episode that is over."""
        self._cost += episode.agent_usage.cost + episode.user_usage.cost
        if episode.verdict is None:
            self._failed += 1
            self._why = failure_cause(episode.error) or self._why
        else:
            self._scored += 1
            self._right += is_success(episode.reward)

    @property
    def figures(self) -> dict[str, float | str]:
        """By name, as they are shown now."""
        figures: dict[str, float | str] = {}
        waiting = self._planned - self._scored - self._failed
        if self._scored:
            low, high = (right / (self._scored + waiting) for right in (self._right, self._right + waiting))
            figures["success"] = f"{low:.1%}" if not waiting else f"at least {low:.1%}, at most {high:.1%}"
        if self._failed:
            figures["failed"] = f"{self._failed} (last: {self._why})" if self._why else self._failed
        if self._cost:
            figures["cost"] = f"${self._cost:.2f}"
        return figures


def failure_cause(error: str | None) -> str:
    """The cause of a failed episode in a few words: whose it was and what happened, without address and advice."""
    text = re.sub(r"\bendpoint \S+ at \S+: ", "", error or "")
    text = re.split(r"; | \(gave up", text, maxsplit=1)[0]
    return textwrap.shorten("".join(c if c.isprintable() else " " for c in text), 60, placeholder="…")


PLAIN_EVERY = 15.0
"""Seconds between plain lines of one phase."""

MARK_EVERY = 1.0
"""Seconds between the marks that a rate is taken over, so that what is done in bursts has no rate of its own."""


def rate_text(per_second: float, unit: str) -> str:
    """A rate with the unit that keeps it readable: 12 episodes/s, 3.4 s/step."""
    if per_second <= 0:
        return ""
    if per_second >= 1:
        return f"{_digits(per_second)} {unit}/s"
    return f"{_digits(1 / per_second)} s/{unit.removesuffix('s')}"


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


def figure(value: float | str) -> str:
    """A figure in few characters: 0.413, 12.3, 1,234."""
    if isinstance(value, str):
        return value
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.3f}" if abs(value) < 1 else _digits(value) if value > 0 else f"-{_digits(-value)}"


class Phase:
    """One stretch of work. ``total`` None means that nobody knows how much there is."""

    def __init__(self, owner: Progress, name: str, total: int | None, unit: str) -> None:
        self.name, self.total, self.unit = name, total, unit
        self.done = 0
        self.over = False
        self.figures: dict[str, float | str] = {}
        self.note: str | None = None
        self._owner = owner
        self._before = 0
        self._began = self._last_line = owner.now()
        # Enough marks that a slow start (compilation, caches) is forgotten, few enough to follow a change.
        self._marks: deque[tuple[float, int]] = deque([(self._began, 0)], maxlen=32)

    def resume(self, done: int) -> None:
        """Note what had been done before this phase began. It counts as done, and in no rate."""
        self._before = self.done = done
        self._marks = deque([(self._owner.now(), done)], maxlen=32)
        self._owner._show(self)

    def advance(self, n: int = 1, **figures: float | str) -> None:
        """Note that ``n`` more are done. Named figures replace those shown."""
        self.done += n
        self.figures.update(figures)
        now = self._owner.now()
        if now - self._marks[-1][0] >= MARK_EVERY:
            self._marks.append((now, self.done))
        self._owner._show(self)

    @property
    def rate(self) -> float:
        """Units per second: recent ones while there is work, all of them once it is done. 0 before anything is."""
        since, done = (self._began, self._before) if self._all_done else self._marks[0]
        seconds = self._owner.now() - since
        return (self.done - done) / seconds if seconds > 0 else 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the phase began."""
        return self._owner.now() - self._began

    @property
    def seconds_left(self) -> float | None:
        """At the recent rate; None where it cannot be told."""
        if self.total is None or self.rate <= 0:
            return None
        return max(0, self.total - self.done) / self.rate

    @property
    def shares(self) -> tuple[float, float]:
        """The share of the work that is done, and the share that was done in this phase; 0 where nobody knows."""
        if not self.total:
            return 0.0, 0.0
        return min(1.0, self.done / self.total), min(1.0, max(0, self.done - self._before) / self.total)

    @property
    def _all_done(self) -> bool:
        return self.over or (self.total is not None and self.done >= self.total)

    def describe(self) -> str:
        """Rate, time and figures in one line, without the name and the count."""
        parts = [rate_text(self.rate, self.unit)]
        if self._all_done:
            parts.append(f"in {clock(self.seconds)}")
        else:
            left = self.seconds_left
            parts.append(f"{clock(left)} left" if left is not None else clock(self.seconds))
        parts += [f"{name.replace('_', ' ')} {figure(value)}" for name, value in self.figures.items()]
        parts += [self.note] if self.note else []
        parts.append(self._owner._place(self))
        return " · ".join(p for p in parts if p)


class Progress:
    """Shows phases. ``live`` None: bars if the console is a terminal, else plain lines, at most one every
    ``every`` seconds and one at the end of a phase. ``now`` is the clock, for tests."""

    def __init__(
        self,
        console: Console | None = None,
        *,
        live: bool | None = None,
        every: float = PLAIN_EVERY,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = console or Screen(stderr=True)
        self.live = self.console.is_terminal and not self.console.is_dumb_terminal if live is None else live
        self.now = now
        self._every = every
        self._bars: Bars | None = None
        self._tasks: dict[int, object] = {}
        self._open: list[Phase] = []
        self._job: JobStages | None = None

    def plan(self, stages: Mapping[str, float], without_model: Collection[str] = ()) -> None:
        """Say what the whole job consists of: its phases by name, in order, with the seconds that each may take. How
        much faster or slower this machine is with this model, is learned from the phases that are done, but for those
        ``without_model``. From now on the line of a phase says which stage of the job it is, and about how much time is
        left for all of them."""
        self._job = JobStages(stages, without_model)

    def say(self, text: str) -> None:
        """One line for the person to keep, above the bars."""
        (self._bars.console if self._bars else self.console).print(Text(text), soft_wrap=True)

    @contextmanager
    def phase(self, name: str, total: int | None = None, unit: str = "steps") -> Iterator[Phase]:
        """A phase while its block runs. Phases may overlap (an evaluation inside training)."""
        phase = Phase(self, name, total, unit)
        self._open.append(phase)
        opened = False
        if self.live:
            if self._bars is None:
                clear()
                self._bars = Bars(
                    TextColumn("{task.description}", markup=False),
                    BarColumn(bar_width=24),
                    MofNCompleteColumn(),
                    TextColumn("{task.fields[text]}", markup=False),
                    console=self.console,
                    refresh_per_second=4,
                )
                self._bars.start()
                opened = True
            self._tasks[id(phase)] = self._bars.add_task(Text(name).plain, total=total, text="")
        else:
            begun = f"{name}: {total:,} {unit.removesuffix('s') if total == 1 else unit}" if total is not None else name
            self.say(" · ".join(part for part in (begun, self._place(phase)) if part))
        try:
            yield phase
            finished = True
        except BaseException:
            finished = False
            raise
        finally:
            phase.over = True
            if self._job is not None and self._open[0] is phase:
                self._job.add(phase.name, phase.seconds, phase.shares[1])
            self._open.remove(phase)
            if self.live and self._bars is not None:
                self._show(phase)
                if opened:
                    self._bars.stop()
                    self._bars = None
                    self._tasks.clear()
            elif not self.live:
                self.say(self._line(phase, "done" if finished else "stopped"))

    def _show(self, phase: Phase) -> None:
        if self._bars is not None:
            task = self._tasks.get(id(phase))
            if task is not None:
                self._bars.update(task, completed=phase.done, text=phase.describe())  # type: ignore[arg-type]
        elif not self.live and self.now() - phase._last_line >= self._every:
            phase._last_line = self.now()
            self.say(self._line(phase))

    def _place(self, phase: Phase) -> str:
        """Where the job is; nothing for a phase within another."""
        if self._job is None or phase.over or self._open[:1] != [phase]:
            return ""
        return self._job.text(phase.name, phase.seconds, *phase.shares)

    @staticmethod
    def _line(phase: Phase, state: str = "") -> str:
        count = f"{phase.done:,}" if phase.total is None else f"{phase.done:,}/{phase.total:,}"
        unit = phase.unit.removesuffix("s") if phase.total == 1 else phase.unit
        head = f"{phase.name}: {count} {unit}"
        return " · ".join(p for p in (head, state, phase.describe()) if p)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
