"""Experiments: several runs, its stages, that are made where they are missing.

A stage is an ordinary run with a configuration of its own. One that is finished is kept, one that was cut off is
resumed, and one that was begun with other settings is refused before anything runs. So the same command goes on
wherever an experiment stopped; what it needs to know lies in the runs' own folders.
"""

from __future__ import annotations

import importlib
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

from muarl.basics.errors import ConfigError, MuarlError
from muarl.cli.asked import CommandRequest, asked_for
from muarl.cli.main import subcommands
from muarl.cli.options import as_overrides
from muarl.config.sections import RunConfig
from muarl.environments.registry import is_reference
from muarl.observe.rundir import RunDirectory
from muarl.observe.screen import Screen
from muarl.observe.status import FINISHED, RUNNING
from muarl.observe.terminal import echo
from muarl.pages.table import ShownTable, table, to_terminal
from muarl.runs.config_changes import changes, may_change

STOPPED = (130, 143, -signal.SIGINT, -signal.SIGTERM)
"""Exit codes of a process that a signal stopped."""
PACKS = "learner.pack_tokens"
"""A setting that a run lowers to this machine's memory, unless it was given."""
PIPE_WIDTH = 160
"""Columns of a table where there is no terminal to ask."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """One run. ``config``: everything about it, ``resume`` aside. ``recipe``: the module that runs it in this process,
    by ``run(config)``. ``words``: instead, the arguments of ``muarl`` that begin it in a process of its own. ``needs``:
    stages that must be finished before."""

    name: str
    config: RunConfig
    recipe: str = ""
    words: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.config.run_dir

    @property
    def is_begun(self) -> bool:
        """Whether a run stands in its folder."""
        return (self.folder / "config.yaml").is_file()

    @property
    def is_finished(self) -> bool:
        """Whether it has been run to its end."""
        return self.is_begun and self._status().get("state") == FINISHED

    @property
    def state(self) -> str:
        """How its run stands; "to do" where there is none."""
        return RunDirectory.at(self.folder).state if self._status() else "begun" if self.is_begun else "to do"

    def _status(self) -> Mapping[str, Any]:
        found = (self.folder / "status.json").is_file()
        return RunDirectory.at(self.folder).read_json("status") if found else {}

    def changed(self) -> dict[str, Any]:
        """The settings that differ from those that its run was begun with, none of which shapes what it finds.

        ConfigError if one does, or if another process is running it."""
        found = changes(self.folder, self.config) if self.is_begun else {}
        if other := [name for name in found if not may_change(name, "")]:
            raise ConfigError(
                f"{self.folder} was begun with other settings ({', '.join(other[:3])}): choose another --name, use the "
                "same settings, or remove that folder and those of the stages that began with it"
            )
        if self.state == RUNNING:
            raise ConfigError(f"{self.folder} is being run by another process")
        return {name: now for name, (_, now) in found.items()}

    def must_be_finished(self) -> None:
        """ConfigError unless it is, after it was run: it then went to another folder than its own."""
        if not self.is_finished:
            raise ConfigError(f"{self.folder} holds something else than a run: remove it, or choose another --name")


def asked_of(*words: str) -> CommandRequest:
    """What ``muarl WORDS`` is asked for, by the command's own options."""
    return asked_for(subcommands()[words[0]].built(words[0]), words[1:])


def command_stage(*words: str, needs: Sequence[str] = ()) -> Stage:
    """The run that ``muarl WORDS`` makes, called as its ``--name``."""
    config = asked_of(*words).config
    return Stage(config.name, config, words=words, needs=tuple(needs))


Play = Callable[[Stage, Say, IO[Any] | None], "subprocess.Popen[bytes] | None"]


def by_recipe(stage: Stage, say: Say, output: IO[Any] | None = None) -> None:
    """Run a stage in this process, or resume it."""
    resume = stage.folder if stage.is_begun else None
    importlib.import_module(stage.recipe).run(stage.config.model_copy(update={"resume": resume}))
    stage.must_be_finished()


def by_command(stage: Stage, say: Say, output: IO[Any] | None = None) -> subprocess.Popen[bytes]:
    """Begin a stage in a process of its own, or resume it there. Settings that may change are those of now, and a
    person's own environments are named again, since a run's folder may name no code. ``output``: where it prints."""
    words = list(stage.words)
    if stage.is_begun:
        own = [word for d in stage.config.domains if is_reference(d.name) for word in ("--domain", d.name)]
        settings = stage.changed()
        if not any(word.startswith(f"{PACKS}=") for word in words):
            settings.pop(PACKS, None)
        words = [words[0], "--resume", str(stage.folder), *own, *sorted(as_overrides(settings))]
    say(f"muarl {shlex.join(words)}")
    return launch(words, output)


def launch(words: Sequence[str], output: IO[Any] | None = None) -> subprocess.Popen[bytes]:
    """Start muarl with these arguments in a process of its own."""
    program = [sys.executable, "-c", "from muarl.cli.main import main; main()"]
    return subprocess.Popen([*program, *words], stdout=output, stderr=output)


@dataclass(frozen=True)
class Experiment:
    """Stages in an order in which they can be run. ``play``: runs one, or starts the process that does. ``finished``:
    whether nothing of a stage is left to do. ``go_on``: asked before each stage that is run; False ends it there."""

    stages: Sequence[Stage]
    play: Play = by_recipe
    finished: Callable[[Stage], bool] = attrgetter("is_finished")
    go_on: Callable[[Stage], bool] = lambda stage: True

    def run(self, say: Say, *, jobs: int = 1) -> None:
        """Run whatever of the stages is not finished; up to ``jobs`` at once where each is a process, which then
        prints to FOLDER.log.

        ConfigError, before anything is run, if one was begun with other settings; MuarlError if one does not end well.
        """
        self.check()
        running: dict[subprocess.Popen[bytes], Stage] = {}
        try:
            for number, stage in enumerate(self.stages, 1):
                where = f"Stage {number} of {len(self.stages)}: {stage.name}"
                if self.finished(stage):
                    say(f"{where}: finished before.")
                    continue
                while len(running) >= jobs or any(one.name in stage.needs for one in running.values()):
                    _end(running)
                if not self.go_on(stage):
                    break
                say(f"{where}.")
                child = self._begin(stage, say, apart=jobs > 1)
                if child is not None:
                    running[child] = stage
            while running:
                _end(running)
        finally:
            while running:  # one was stopped or failed: the others end as they can
                running.pop(wait_for(running))

    def _begin(self, stage: Stage, say: Say, *, apart: bool) -> subprocess.Popen[bytes] | None:
        if not apart:
            return self.play(stage, say, None)
        log = stage.folder.with_name(f"{stage.folder.name}.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        say(f"Its output: {log}")
        with log.open("ab") as output:
            return self.play(stage, say, output)

    def check(self) -> None:
        """ConfigError if a stage was begun with other settings, or is being run by another process."""
        for stage in self.stages:
            stage.changed()

    def table(self) -> ShownTable:
        """How the stages stand."""
        rows = [(s.name, s.state, ", ".join(s.needs), str(s.folder)) for s in self.stages]
        return table(("stage", "state", "needs", "folder"), rows, words=4)


def made(*words: str) -> RunDirectory:
    """The finished run that ``muarl WORDS`` makes: begun, resumed, or kept as it is."""
    stage = command_stage(*words)
    Experiment([stage], by_command).run(partial(echo, err=True))
    return RunDirectory.at(stage.folder)


def _end(running: dict[subprocess.Popen[bytes], Stage]) -> None:
    """Wait until one of these stages ends. KeyboardInterrupt where it was stopped, MuarlError where it failed."""
    child = wait_for(running)
    stage, code = running.pop(child), child.returncode
    if code in STOPPED:
        raise KeyboardInterrupt
    if code:
        raise MuarlError(f"{stage.name} ended with exit code {code}; run the same command again to resume")
    stage.must_be_finished()


def wait_for(children: Collection[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """The first of these processes to end. Each saves before it ends where it is stopped: Ctrl-C reaches it from the
    terminal, SIGTERM is passed on to it."""

    def pass_on(number: int, _: object) -> None:
        for child in children:
            child.send_signal(number)

    before = signal.signal(signal.SIGTERM, pass_on)
    try:
        while True:
            try:
                for child in children:
                    if child.poll() is not None:
                        return child
                time.sleep(0.1)
            except KeyboardInterrupt:
                continue
    finally:
        signal.signal(signal.SIGTERM, before)


def show(shown: ShownTable, *, lines: bool = True) -> None:
    """Print a table; where there is no terminal to ask, so wide that its names are not cut."""
    Screen(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(to_terminal(shown, lines=lines))
