"""Stages of an experiment: each is run once, after what it needs, taken up where it was cut off, and by its own
settings alone."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import ConfigError, MuarlError
from muarl.config.load import load_config
from muarl.observe.rundir import RunDirectory
from muarl_tools.experiments import stages
from muarl_tools.experiments.stages import Experiment, Stage, by_command, command_stage, made
from support.ended import Ended


@pytest.fixture
def stage(tmp_path: Path) -> Callable[..., Stage]:
    def make(name: str, *needs: str) -> Stage:
        return command_stage("train", "--name", name, f"runs_dir={tmp_path}", "rl.steps=2", needs=needs)

    return make


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Working]:
    """The processes that were started; each ends when asked for the second time, by leaving a finished run."""
    seen: list[Working] = []

    def launch(words: Sequence[str], output: Any = None) -> Working:
        seen.append(Working(list(words), seen))
        return seen[-1]

    monkeypatch.setattr(stages, "launch", launch)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    return seen


class Working(Ended):
    """A process that takes a while. ``beside``: how many others worked when it began."""

    def __init__(self, words: list[str], seen: list[Working]) -> None:
        super().__init__(0)
        self.words, self.polls = words, 0
        self.beside = sum(other.polls < 2 for other in seen)

    def poll(self) -> int | None:
        self.polls += 1
        if self.polls == 2:
            if "--resume" in self.words:
                folder = Path(self.words[self.words.index("--resume") + 1])
                run = RunDirectory(folder.parent, folder.name, existing="resume")
            else:
                run = begun(stages.asked_of(*self.words).config.run_dir, *self.words)
            run.write_status("finished")
        return None if self.polls < 2 else self.returncode


def begun(folder: Path, *words: str, **changed: Any) -> RunDirectory:
    """A run as far as its folder and its configuration, as a command leaves it that is killed then."""
    run = RunDirectory(folder.parent, folder.name)
    run.write_config(stages.asked_of(*words).config.model_dump(mode="json") | changed)
    return run


def test_a_stage_waits_for_what_it_needs_and_no_more_run_at_once_than_may(
    stage: Callable[..., Stage], launched: list[Working]
) -> None:
    wanted = [stage("a"), stage("b"), stage("c", "a"), stage("d"), stage("e", "c", "d")]
    Experiment(wanted, by_command).run(print, jobs=2)
    assert [one.words[one.words.index("--name") + 1] for one in launched] == ["a", "b", "c", "d", "e"]
    assert max(one.beside for one in launched) == 1 and launched[-1].beside == 0
    launched.clear()
    Experiment(wanted, by_command).run(print)
    assert not launched, "finished stages are kept"


def test_the_table_tells_how_stages_stand(stage: Callable[..., Stage], launched: list[Working]) -> None:
    first, second, third = stage("a"), stage("b", "a"), stage("c")
    Experiment([first], by_command).run(print)
    begun(second.folder, *second.words)
    shown = Experiment([first, second, third]).table()
    assert [row[1] for row in shown.rows] == ["finished", "begun", "to do"]
    RunDirectory.at(first.folder).write_status("running")
    with pytest.raises(ConfigError, match="is being run by another process"):
        Experiment([first, second]).check()


def test_a_stage_goes_on_where_it_was_cut_off(stage: Callable[..., Stage], launched: list[Working]) -> None:
    one = stage("a")
    begun(one.folder, *one.words)
    Experiment([one], by_command).run(print)
    assert launched[0].words == ["train", "--resume", str(one.folder)]


def test_packs_that_follow_this_machine_s_memory_are_the_run_s_own(
    stage: Callable[..., Stage], launched: list[Working]
) -> None:
    one = stage("a")
    learner = one.config.learner.model_copy(update={"pack_tokens": 512}).model_dump(mode="json")
    begun(one.folder, *one.words, learner=learner)
    Experiment([one], by_command).run(print)
    assert launched[0].words == ["train", "--resume", str(one.folder)]


@pytest.mark.parametrize("setting", ["rl.lr=0.5", "rl.steps=9", "seed=4"])
def test_a_stage_of_other_settings_is_refused_before_anything_runs(
    setting: str, tmp_path: Path, launched: list[Working]
) -> None:
    words = ("train", "--name", "b", f"runs_dir={tmp_path}", "rl.steps=2")
    begun(tmp_path / "b", *words).write_status("finished")
    wanted = [command_stage("train", "--name", "a", f"runs_dir={tmp_path}"), command_stage(*words, setting)]
    with pytest.raises(ConfigError, match=rf"b was begun with other settings \({setting.split('=')[0]}\): choose"):
        Experiment(wanted, by_command).run(print)
    assert not launched


def test_a_run_of_an_older_muarl_is_taken_as_it_is(tmp_path: Path, launched: list[Working]) -> None:
    words = ("train", "--name", "a", f"runs_dir={tmp_path}")
    config = load_config("cpu", ["name=a", f"runs_dir={tmp_path}"]).model_dump(mode="json")
    del config["budget"], config["reproduce"]
    run = RunDirectory(tmp_path, "a")
    run.write_config(config)
    run.write_status("finished")
    assert made(*words).path == tmp_path / "a" and not launched


def test_a_folder_that_holds_no_run_is_told(
    stage: Callable[..., Stage], launched: list[Working], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "launch", lambda words, output=None: Ended(0))
    with pytest.raises(ConfigError, match="a holds something else than a run: remove it, or choose another --name"):
        Experiment([stage("a")], by_command).run(print)


@pytest.mark.parametrize(("code", "raised"), [(130, KeyboardInterrupt), (-signal.SIGTERM, KeyboardInterrupt)])
def test_a_stage_that_was_stopped_stops_the_experiment(
    code: int, raised: type[BaseException], stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "launch", lambda words, output=None: Ended(code))
    with pytest.raises(raised):
        Experiment([stage("a"), stage("b")], by_command).run(print)


def test_a_stage_that_fails_says_how_to_go_on(stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "launch", lambda words, output=None: Ended(3))
    with pytest.raises(MuarlError, match="a ended with exit code 3; run the same command again to resume"):
        made("train", "--name", "a", f"runs_dir={stage('a').folder.parent}")


def test_a_command_that_runs_no_recipe_is_no_stage() -> None:
    with pytest.raises(ConfigError, match="presets: runs no recipe"):
        command_stage("presets")
