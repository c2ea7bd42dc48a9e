"""The run directory: whole files, honest status, nothing overwritten, nothing secret."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from muarl.basics import files
from muarl.basics.errors import MuarlError
from muarl.basics.system import _descendants, git_commit, peak_memory_bytes, versions
from muarl.observe.loggers import CompositeLogger, JsonlLogger, make_logger
from muarl.observe.rundir import RunDirectory
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn


def status(run: RunDirectory) -> dict[str, object]:
    return json.loads((run.path / "status.json").read_text())


class TestNames:
    def test_refuses_an_existing_run_and_says_what_to_do(self, tmp_path: Path) -> None:
        RunDirectory(tmp_path, "a")
        with pytest.raises(MuarlError, match=r"already exists.*another name.*resume"):
            RunDirectory(tmp_path, "a")

    def test_suffix(self, tmp_path: Path) -> None:
        names = [RunDirectory(tmp_path, "a", existing="suffix").name for _ in range(3)]
        assert names == ["a", "a-2", "a-3"]

    def test_an_empty_folder_is_free(self, tmp_path: Path) -> None:
        (tmp_path / "a" / "episodes").mkdir(parents=True)
        assert RunDirectory(tmp_path, "a").name == "a"

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b"])
    def test_names_stay_inside_the_root(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(MuarlError, match="no name for a run"):
            RunDirectory(tmp_path, name)

    def test_nothing_to_read(self, tmp_path: Path) -> None:
        with pytest.raises(MuarlError, match="no run at"):
            RunDirectory.at(tmp_path / "none")
        (tmp_path / "notes.txt").write_text("somebody's own folder")
        with pytest.raises(MuarlError, match="no run at"):
            RunDirectory.at(tmp_path)


class TestStatus:
    def test_finished(self, tmp_path: Path) -> None:
        with RunDirectory(tmp_path, "a") as run:
            assert status(run)["state"] == "running"
        assert status(run)["state"] == "finished"

    def test_interrupted(self, tmp_path: Path) -> None:
        run = RunDirectory(tmp_path, "a")
        with pytest.raises(KeyboardInterrupt), run:
            raise KeyboardInterrupt
        assert status(run)["state"] == "interrupted"

    def test_failed_tells_why(self, tmp_path: Path) -> None:
        run = RunDirectory(tmp_path, "a")
        with pytest.raises(ValueError), run:
            raise ValueError("loss is nan")
        assert status(run)["state"] == "failed"
        assert "loss is nan" in str(status(run)["message"])


class TestMetrics:
    def test_rows_are_whole_and_ordered(self, tmp_path: Path) -> None:
        run = RunDirectory(tmp_path, "a")
        run.log({"reward": 0.5, "kl": float("nan")}, phase="rl", step=1)
        run.log({"reward": 0.6}, phase="rl", step=2)
        rows = run.read_metrics()
        assert [(r["phase"], r["step"], r["reward"]) for r in rows] == [("rl", 1, 0.5), ("rl", 2, 0.6)]
        assert rows[0]["kl"] is None  # strict JSON holds no NaN
        assert rows[0]["seconds"] >= 0

    def test_resume_cuts_a_torn_line_and_later_rows_hold(self, tmp_path: Path) -> None:
        run = RunDirectory(tmp_path, "a")
        run.log({"reward": 0.1}, phase="rl", step=1)
        row = json.loads(run.metrics.read_text())
        run.metrics.write_text(json.dumps(row | {"seconds": 100.0}) + '\n{"phase": "rl", "st')
        again = RunDirectory(tmp_path, "a", existing="resume")
        again.log({"reward": 0.2}, phase="rl", step=1)
        again.log({"reward": 0.3}, phase="rl", step=2)
        assert [r["reward"] for r in again.read_metrics()] == [0.2, 0.3]
        assert again.seconds > 100
        assert len(again.metrics.read_text().splitlines()) == 3

    def test_the_clock_of_a_resumed_run_counts_what_came_after_the_last_row(self, tmp_path: Path) -> None:
        with RunDirectory(tmp_path, "a") as run:
            run.log({"reward": 0.1}, phase="rl", step=1)
        (run.path / "status.json").write_text(json.dumps(status(run) | {"seconds": 200.0}))
        assert RunDirectory(tmp_path, "a", existing="resume").seconds > 200

    def test_a_torn_last_line_can_be_read_around_and_another_is_named(self, tmp_path: Path) -> None:
        run = RunDirectory(tmp_path, "a")
        run.metrics.write_text('{"step": 1}\n{"st')
        assert [r["step"] for r in run.read_metrics()] == [1]
        run.metrics.write_text('{"step": 1}\n{"st\n{"step": 3}\n')
        with pytest.raises(MuarlError, match=r"metrics.jsonl, line 2"):
            run.read_metrics()

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full to play a full disk")
    def test_a_full_disk_is_one_clear_sentence(self, tmp_path: Path) -> None:
        run = RunDirectory(tmp_path, "a")
        run.metrics.symlink_to("/dev/full")
        with pytest.raises(MuarlError, match=r"disk is full.*metrics.jsonl"):
            run.log({"reward": 1.0}, phase="rl", step=1)

    def test_a_full_disk_leaves_no_half_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run = RunDirectory(tmp_path, "a")
        run.log({"reward": 0.5}, phase="rl", step=1)
        real = os.write
        room = [10]

        def write(handle: int, data: bytes) -> int:
            if not room[0]:
                raise OSError(28, "No space left on device")
            size, room[0] = room[0], 0
            return real(handle, data[:size])

        monkeypatch.setattr(files.os, "write", write)
        with pytest.raises(MuarlError, match="disk is full"):
            run.log({"reward": 0.6}, phase="rl", step=2)
        monkeypatch.undo()
        assert [r["reward"] for r in run.read_metrics()] == [0.5]
        assert run.metrics.read_text().endswith("\n")

    def test_a_full_disk_leaves_the_old_summary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run = RunDirectory(tmp_path, "a")
        run.write_summary({"success": 1})

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(files.os, "fsync", full)
        with pytest.raises(MuarlError, match=r"disk is full.*summary\.json"):
            run.write_summary({"success": 2})
        with pytest.raises(MuarlError), run:
            raise MuarlError("disk is full")
        assert status(run)["state"] == "failed"  # told in place
        assert run.read_json("summary") == {"success": 1}
        assert not list(run.path.glob(".*.tmp"))


class TestContents:
    def test_config_masks_secrets_and_the_home_folder(self, tmp_path: Path) -> None:
        run = RunDirectory(tmp_path, "a")
        config = {
            "user": {"api_key": "sk-123", "max_tokens": 64, "model": "gpt"},
            "hf_token": "hf_1",
            "path": str(Path.home() / "runs"),
            "lr": 1e-3,
        }
        run.write_config(config)
        text = run.read_config()
        assert "sk-123" not in text and "hf_1" not in text
        read = yaml.safe_load(text)
        assert read["user"] == {"api_key": "***", "max_tokens": 64, "model": "gpt"}
        assert read["path"] == "~/runs"

    def test_versions_tell_software_and_no_paths(self) -> None:
        found = versions()
        assert {"python", "torch", "muarl", "platform"} <= set(found)
        assert str(Path.home()) not in json.dumps(found) or str(Path.home()) == "/"

    def test_git_commit_is_ours_or_none(self) -> None:
        commit = git_commit()
        assert commit is None or len(commit.removesuffix("+changes")) == 40

    def test_episodes_come_back(self, tmp_path: Path) -> None:
        run = RunDirectory(tmp_path, "a")
        episode = Episode("e", "t", "retail", [Turn(Message("user", "hé"))], StopReason.USER_STOP)
        run.write_episodes("eval-before", [episode])
        assert run.read_episodes("eval-before") == [episode]
        modes = {p.stat().st_mode for p in (run.episodes / "eval-before.jsonl", run.path / "versions.json")}
        assert len(modes) == 1, "colleagues may read episodes as they may read everything else"
        assert run.read_episodes("eval-after") == []
        (run.episodes / "eval-after.jsonl").write_text('{"schema": 99}\n')
        with pytest.raises(MuarlError, match=r"eval-after.jsonl, line 1: schema"):
            run.read_episodes("eval-after")

    def test_broken_summary_is_named(self, tmp_path: Path) -> None:
        run = RunDirectory(tmp_path, "a")
        run.summary.write_text("{")
        with pytest.raises(MuarlError, match=r"summary.json: is not valid JSON"):
            run.read_json("summary")


class TestLoggers:
    def test_tensorboard_events_can_be_read_back(self, tmp_path: Path) -> None:
        loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
        run = RunDirectory(tmp_path, "a")
        logger = make_logger(run)
        logger.log({"reward": 0.25, "note": "text", "kl": float("inf")}, phase="rl", step=7)
        logger.close()
        [path] = run.tensorboard.glob("events.out.tfevents.*")
        events = list(loader.LegacyEventFileLoader(str(path)).Load())
        values = [(e.step, v.tag, v.simple_value) for e in events for v in e.summary.value]
        assert values == [(7, "rl/reward", 0.25)]
        assert run.read_metrics()[0]["reward"] == 0.25

    def test_a_full_disk_ends_tensorboard_only(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        run = RunDirectory(tmp_path, "a")
        logger = make_logger(run)
        logger.log({"reward": 0.25}, phase="rl", step=1)
        [path] = run.tensorboard.iterdir()
        before, real = path.read_bytes(), os.write

        def write(handle: int, data: bytes) -> int:
            if os.fstat(handle).st_ino != path.stat().st_ino:
                return real(handle, data)
            if len(data) < 10:
                raise OSError(28, "No space left on device")
            return real(handle, data[: len(data) - 5])

        monkeypatch.setattr(files.os, "write", write)
        for step in (2, 3):
            logger.log({"reward": 0.5}, phase="rl", step=step)
        logger.close()
        assert path.read_bytes() == before, "no half event"
        assert [r["step"] for r in run.read_metrics()] == [1, 2, 3]
        assert caplog.text.count("The run continues") == 1

    def test_a_broken_extra_logger_does_not_end_the_run(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        class Broken:
            calls = 0

            def log(self, values: object, *, phase: str, step: int) -> None:
                self.calls += 1
                raise ConnectionError("no network")

            def close(self) -> None:
                raise ConnectionError("no network")

        run, broken = RunDirectory(tmp_path, "a"), Broken()
        logger = CompositeLogger(JsonlLogger(run), broken)
        for step in range(3):
            logger.log({"reward": 1.0}, phase="rl", step=step)
        logger.close()
        assert broken.calls == 1
        assert len(run.read_metrics()) == 3
        assert "no network" in caplog.text


def test_peak_memory_counts_a_living_child() -> None:
    before = peak_memory_bytes()
    assert before > 5e6
    code = "x = bytearray(60_000_000); print(len(x), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        if Path("/proc/self/task").exists():
            assert child.pid in _descendants(os.getpid())
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            assert peak_memory_bytes() > own + 50e6
        child.communicate(b"\n")
