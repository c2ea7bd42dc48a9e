"""Checkpoints whose files were damaged or half-written: found by their sums and passed over. And which are deleted."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from muarl.basics.errors import CheckpointError, MuarlError
from muarl.learning import checkpoint_files, retention
from muarl.learning.checkpoint_files import MANIFEST, file_sum, seal, verify
from muarl.learning.checkpoint_folders import checkpoint_path, list_checkpoints
from muarl.learning.checkpoints import check_whole, load_policy, save_policy
from muarl.learning.retention import Retention, newest_whole, prune_checkpoints, set_aside, tidy
from muarl.learning.state_files import TrainerState

State = TrainerState({"m": torch.arange(64.0)}, {"step": 1})


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the checkpoints are written that each test has a copy of."""
    return tmp_path_factory.mktemp("original")


@pytest.fixture
def root(original: Path, tmp_path: Path, make_model: Callable[..., Any], tokenizer: Any) -> Path:
    """Checkpoints of the steps 1, 2 and 3."""
    if not list_checkpoints(original):
        for step in (1, 2, 3):
            save_policy(checkpoint_path(original, step), make_model(step), tokenizer, State)
    return Path(shutil.copytree(original, tmp_path, dirs_exist_ok=True))


def steps(root: Path) -> list[int]:
    return [step for step, _ in list_checkpoints(root)]


def flip(file: Path, at: int = -40) -> None:
    """One bit of a file, its size and time of change as before."""
    status = file.stat()
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_file_of_a_checkpoint_is_in_its_manifest(root: Path) -> None:
    folder = checkpoint_path(root, 3)
    listed = json.loads((folder / MANIFEST).read_text())["files"]
    there = {p.name for p in folder.iterdir() if p.name != MANIFEST}
    assert set(listed) == there and {"model.safetensors", "trainer.safetensors", "trainer.json"} <= there
    for name, said in listed.items():
        assert said == {"bytes": (folder / name).stat().st_size, "sha256": file_sum(folder / name)}
    check_whole(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "trainer.safetensors", "trainer.json", "config.json"])
def test_one_bit_is_enough(root: Path, name: str) -> None:
    folder = checkpoint_path(root, 3)
    file = folder / name
    data = file.read_bytes()
    file.write_bytes(data.replace(b" ", b"\t", 1) if name.endswith("json") else data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(CheckpointError) as told:
        check_whole(folder)
    assert str(file) in str(told.value) and "SHA-256" in str(told.value)
    assert f"use the checkpoint before it, {checkpoint_path(root, 2)}" in str(told.value)
    if name == "model.safetensors":
        with pytest.raises(CheckpointError, match=r"model\.safetensors: its contents have changed"):
            load_policy(folder)
    elif name.startswith("trainer"):
        load_policy(folder)  # who only samples does not need it


def test_what_was_changed_on_purpose_can_be_used(root: Path) -> None:
    folder = checkpoint_path(root, 1)
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    with pytest.raises(CheckpointError, match=r"remove .*manifest\.json if the file was changed on purpose"):
        load_policy(folder)
    (folder / MANIFEST).unlink()
    load_policy(folder)
    check_whole(folder)  # like one of an older version


def test_a_file_is_read_once_by_a_process(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    original = checkpoint_files.file_sum
    monkeypatch.setattr(checkpoint_files, "file_sum", lambda path: read.append(path) or original(path))
    folder = checkpoint_path(root, 3)
    check_whole(folder)
    once = len(read)
    check_whole(folder)
    assert once == len(read) > 0
    os.utime(folder / "model.safetensors")
    check_whole(folder)
    assert len(read) == once + 1


def test_a_manifest_names_nothing_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "secret").write_text("x")
    files = {"../secret": {"bytes": 1, "sha256": file_sum(tmp_path / "secret")}}
    (tmp_path / "a" / MANIFEST).write_text(json.dumps({"format": 1, "files": files}))
    with pytest.raises(CheckpointError, match="outside its own folder"):
        verify(tmp_path / "a")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "files": {"a": 3}}'])
def test_a_broken_manifest_is_damage(root: Path, text: str) -> None:
    (checkpoint_path(root, 3) / MANIFEST).write_text(text)
    with pytest.raises(CheckpointError, match=r"manifest\.json: (cannot be read|is not valid JSON|must hold)"):
        check_whole(checkpoint_path(root, 3))


@given(st.dictionaries(st.text("abc/", min_size=1, max_size=5), st.binary(max_size=50), max_size=5), st.data())
def test_any_change_of_any_file_is_found(tmp_path_factory: pytest.TempPathFactory, made: Any, data: Any) -> None:
    folder = tmp_path_factory.mktemp("any")
    for name, content in made.items():
        (folder / name.replace("/", "_")).write_bytes(content)
    seal(folder)
    assert verify(folder)
    files = sorted(p for p in folder.iterdir() if p.name != MANIFEST)
    if not files:
        return
    victim = data.draw(st.sampled_from(files))
    content = data.draw(st.binary(max_size=60).filter(lambda b: b != victim.read_bytes()))
    victim.write_bytes(content)
    os.utime(victim, ns=(1, 1))
    with pytest.raises(CheckpointError, match=victim.name):
        verify(folder)


# ── which checkpoint to go on from ───────────────────────────────────────────────────────────────────────────────────


DAMAGE: dict[str, Callable[[Path], object]] = {
    "bit": lambda d: flip(d / "trainer.safetensors"),
    "weights": lambda d: (d / "model.safetensors").write_bytes((d / "model.safetensors").read_bytes()[:-9]),
    "missing": lambda d: (d / "trainer.json").unlink(),
    "empty": lambda d: (d / "tokenizer.json").write_bytes(b""),
    "without manifest": lambda d: ((d / MANIFEST).unlink(), (d / "trainer.safetensors").unlink()),
    "nothing in it": lambda d: [p.unlink() for p in d.iterdir()],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_the_newest_whole_one_is_taken(root: Path, damage: Callable[[Path], object]) -> None:
    damage(checkpoint_path(root, 3))
    found, problems = newest_whole(root)
    assert found == checkpoint_path(root, 2)
    assert len(problems) == 1 and str(checkpoint_path(root, 3)) in str(problems[0])
    (checkpoint_path(root, 2) / "config.json").write_text("{")
    found, problems = newest_whole(root)
    assert found == checkpoint_path(root, 1) and len(problems) == 2
    shutil.rmtree(checkpoint_path(root, 1))
    assert newest_whole(root)[0] is None


def test_what_was_passed_over_is_set_aside_and_goes_when_it_is_made_up_for(
    root: Path, make_model: Callable[..., Any], tokenizer: Any
) -> None:
    moved = set_aside(root, checkpoint_path(root, 1))
    assert [p.name for p in moved] == ["damaged-step-000003", "damaged-step-000002"] and steps(root) == [1]
    save_policy(checkpoint_path(root, 2), make_model(2), tokenizer, State)
    prune_checkpoints(root, Retention())
    assert sorted(p.name for p in root.iterdir()) == ["damaged-step-000003", "step-000001", "step-000002"]
    assert set_aside(root, checkpoint_path(root, 2)) == []
    assert set_aside(root, None) != [] and steps(root) == []


# ── a kill in the middle of writing ──────────────────────────────────────────────────────────────────────────────────


class Killed(BaseException):
    """Stands for a process that ends here: what would clean up does not run."""


@pytest.mark.parametrize("call", [pytest.param(n, marks=pytest.mark.slow if n % 3 else ()) for n in range(1, 40)])
def test_a_kill_at_any_step_of_writing_leaves_the_old_one_whole(
    root: Path, make_model: Callable[..., Any], tokenizer: Any, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """The process ends at one of the calls that change the folder: a file written, flushed, renamed."""
    count = 0

    def cut(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count >= call:
                raise Killed
            return original(*args, **kwargs)

        return run

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_files, "save_file", cut(checkpoint_files.save_file))
        patch.setattr(os, "fsync", cut(os.fsync))
        patch.setattr(os, "replace", cut(os.replace))
        patch.setattr(shutil, "rmtree", cut(shutil.rmtree))
        try:
            save_policy(checkpoint_path(root, 3), make_model(30), tokenizer, State)
            save_policy(checkpoint_path(root, 4), make_model(4), tokenizer, State)
        except Killed:
            pass
    tidy(root)
    assert steps(root) in ([1, 2, 3], [1, 2, 3, 4])
    for _, path in list_checkpoints(root):
        check_whole(path)
    assert not [p for p in root.iterdir() if p.name.startswith(".")]


def test_a_full_disk_says_how_much_is_free(
    root: Path, make_model: Callable[..., Any], tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)  # where a disk without room may be noticed, too
    with pytest.raises(MuarlError, match=r"step-000004: the disk is full \(.* free\).*keep_last.*--resume"):
        save_policy(checkpoint_path(root, 4), make_model(4), tokenizer, State)
    assert steps(root) == [1, 2, 3] and not list(root.glob(".*"))


# ── pruning ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_the_rule_keeps(root: Path) -> None:
    kept = Retention(last=2, best=1, every=10)
    scores = {3: 0.9, 7: 0.9, 8: 0.2}
    assert kept.doomed([3, 5, 7, 8, 10, 11, 12], scores) == [3, 5, 8]
    assert Retention(last=1).doomed([4]) == [] and Retention().doomed([1, 2, 3]) == []
    with pytest.raises(ValueError, match="at least 1"):
        Retention(last=0)


@given(
    st.sets(st.integers(0, 200), max_size=12),
    st.integers(1, 5),
    st.integers(0, 3),
    st.integers(0, 20),
    st.dictionaries(st.integers(0, 200), st.floats(0, 1), max_size=12),
)
def test_the_newest_and_the_best_always_stay(
    there: set[int], last: int, best: int, every: int, scores: dict[int, float]
) -> None:
    kept = there - set(Retention(last, best, every).doomed(sorted(there), scores))
    assert set(sorted(there)[-last:]) <= kept
    known = {s: scores[s] for s in there if s in scores}
    if best and known:
        assert max(known.values()) in {known[s] for s in kept if s in known}
    bound = last + best + (sum(s % every == 0 for s in there) if every else 0)
    assert len(kept) <= bound


@given(st.integers(0, 30), st.none() | st.integers(1, 5), st.integers(0, 5))
def test_how_many_are_there_at_once(written: int, last: int | None, every: int) -> None:
    rule, there, most = Retention(last, 0, every), list[int](), 0
    for step in range(1, written + 1):
        there.append(step)
        most = max(most, len(there))
        there = sorted(set(there) - set(rule.doomed(there)))
    assert rule.at_once(range(1, written + 1)) == most


def test_what_others_point_to_stays(root: Path, tmp_path: Path) -> None:
    for step in range(4, 9):
        shutil.copytree(checkpoint_path(root, 3), checkpoint_path(root, step))
    (checkpoint_path(root, 2) / retention.PIN).touch()
    (root / "best").symlink_to("step-000004")
    gone = prune_checkpoints(root, Retention(last=1), needed=[checkpoint_path(root, 5)], scores={6: 1.0})
    assert [p.name for p in gone] == ["step-000001", "step-000003", "step-000006", "step-000007"]
    assert steps(root) == [2, 4, 5, 8]
    assert not list(root.glob(".*"))
    assert prune_checkpoints(root / "absent", Retention(last=1)) == []


def test_a_kill_while_pruning_leaves_no_half_checkpoint(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(path: Any, **_: Any) -> None:
        if Path(path).exists():
            (Path(path) / "config.json").unlink()
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(Killed):
            prune_checkpoints(root, Retention(last=1))
    assert 3 in steps(root)
    for _, path in list_checkpoints(root):
        check_whole(path)
    prune_checkpoints(root, Retention(last=1))
    assert sorted(p.name for p in root.iterdir()) == ["step-000003"]
