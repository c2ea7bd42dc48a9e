"""A real disk that is full: the run ends clearly, leaves nothing half-written, and goes on when there is room."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import MuarlError
from muarl.basics.files import append_line, free_space, size_text, write_text
from muarl.learning.checkpoint_folders import list_checkpoints
from muarl.learning.checkpoints import check_whole
from muarl.learning.learner import TorchLearner
from support.killing import at_call, episodes, rows

pytestmark = pytest.mark.usefixtures("coin")

KIB = 1024
RL = ["rl.steps=4", "rl.checkpoint_every=2", "rl.save_episodes=all"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 MiB of its own; skipped where this user may not mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk takes root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, left: int) -> Path:
    """A file that leaves so many bytes."""
    filler = disk / "filler"
    with open(filler, "wb") as file:
        try:
            while True:
                file.write(bytes(64 * KIB))
                file.flush()
        except OSError:
            pass
    os.truncate(filler, filler.stat().st_size - left - filler.stat().st_size % 4096)
    return filler


@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 8 * KIB, 48 * KIB, 200 * KIB, 600 * KIB])
def test_a_disk_that_fills_up_in_the_middle(
    disk: Path, muarl: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, litter: Any, left: int
) -> None:
    """Depending on what is left, figures, episodes or the checkpoint are what finds no room first."""
    assert muarl("train", *RL, f"runs_dir={tmp_path}", "--name", "whole").exit_code == 0
    mend = at_call(monkeypatch, TorchLearner, "policy_step", 4, lambda: fill(disk, left))
    result = muarl("train", *RL, f"runs_dir={disk}", "--name", "cut")
    mend()
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    told = result.stderr.replace("\n", " ")
    assert "disk is full" in told and "free)" in told and "Free some space" in told and "resume" in told
    run = disk / "cut"
    status = json.loads((run / "status.json").read_text())
    assert status["state"] == "failed" and "disk is full" in status["message"]
    assert not litter(run)
    for path in run.rglob("*.jsonl"):
        for line in path.read_text().splitlines():
            json.loads(line)
    for _, path in list_checkpoints(run / "checkpoints" / "rl"):
        check_whole(path)
    assert muarl("train", "--resume", str(run)).exit_code == 2, "there is still no room"
    (disk / "filler").unlink()
    again = muarl("train", "--resume", str(run))
    assert again.exit_code == 0, again.output
    assert rows(run) == rows(tmp_path / "whole") and episodes(run) == episodes(tmp_path / "whole")


@pytest.mark.slow
def test_too_small_a_disk_is_told_before_anything_begins(disk: Path, muarl: Callable[..., Any]) -> None:
    fill(disk, 64 * KIB)
    result = muarl("train", *RL, f"runs_dir={disk}", "--name", "cut")
    assert result.exit_code == 2
    told = result.stderr.replace("\n", " ")
    assert "a checkpoint of" in told and "takes at least" in told and "KiB free" in told and "runs_dir" in told
    assert not (disk / "cut").exists()


def test_room_is_asked_for_before_anything_begins(
    muarl: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muarl.runs.room.free_space", lambda path: 1000)
    for command in ("train", "sft", "quickstart"):
        result = muarl(command, "--name", "r")
        assert result.exit_code == 2 and "takes at least" in result.stderr and "1000 bytes free" in result.stderr
    assert not (tmp_path / "runs").exists()


def test_a_limit_on_files_is_no_full_disk_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    file, whole = tmp_path / "metrics.jsonl", tmp_path / "page.html"
    append_line(file, {"step": 1})
    write_text(whole, "old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        with pytest.raises(MuarlError, match=r"limit on the size of files.*metrics\.jsonl.* free\)"):
            append_line(file, {"text": "x" * 200})
        with pytest.raises(MuarlError, match=r"limit on the size of files.*page\.html"):
            write_text(whole, "x" * 200)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, previous)
    assert file.read_text() == '{"step": 1}\n' and whole.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["metrics.jsonl", "page.html"]


def test_sizes_in_words(tmp_path: Path) -> None:
    assert [size_text(n) for n in (0, 1023, 1024, 150 * KIB, 3 * 2**30, 2**50)] == [
        "0 bytes", "1023 bytes", "1.0 KiB", "150 KiB", "3.0 GiB", "1024.0 TiB",
    ]  # fmt: skip
    assert free_space(tmp_path / "not" / "there") == free_space(tmp_path)
