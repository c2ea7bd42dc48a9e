"""A model that has barely learned to speak, made by ``muarl base`` itself, and the settings that keep recipes short."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support import coin as coins

SMALL = [
    "threads=1",
    "model.max_context=768",
    "user.traits=easy",
    "eval.harder_users=[]",
    "rollout.max_turns=5",
    "rollout.tokens_per_turn=24",
    "rl.tasks_per_step=2",
    "rl.group_size=4",
    "rl.steps=3",
    "rl.warmup=0",
    "rl.practice.repeat=0",
    "rl.eval_every=0",
    "sft.steps=3",
    "sft.batch=4",
    "sft.demonstrations=12",
    "sft.warmup=0",
    "eval.tasks=4",
]


@pytest.fixture(scope="session")
def base_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of ``muarl base`` on a model of 32 x 2: it has begun to speak and to end its turns."""
    from muarl.config.load import load_config
    from muarl.recipes import pretraining as base

    small = ["hidden=32", "layers=2", "heads=4", "steps=60", "batch=8", "conversations=60", "validation=4"]
    runs = tmp_path_factory.mktemp("base")
    options = ["name=base", f"runs_dir={runs}", "threads=1", *(f"base.{s}" for s in small)]
    return base.run(load_config("quickstart", options))


@pytest.fixture
def played(request: pytest.FixtureRequest) -> list[str]:
    """The setting of the environment that a test plays: the coin where it uses that fixture, else the quickstart's."""
    return [coins.SETTING] if "coin" in request.fixturenames else []


@pytest.fixture
def configure(configure_in: Callable[..., Any], tmp_path: Path, played: list[str]) -> Callable[..., Any]:
    """``configure("rl.steps=2", name="x")``: the quickstart's config, made small, in runs of this test."""
    return partial(configure_in, tmp_path, *played)


@pytest.fixture(scope="session")
def configure_in(base_run: Path) -> Callable[..., Any]:
    """``configure_in(folder, "rl.steps=2")``: the same in runs of a folder, for runs that several tests share."""
    from muarl.config.load import load_config

    def build(folder: Path, *overrides: str, name: str = "run") -> Any:
        return load_config("quickstart", options(base_run, folder, *overrides, f"name={name}"))

    return build


@pytest.fixture
def small(base_run: Path, played: list[str]) -> Callable[..., list[str]]:
    """``small("rl.steps=2")``: the same settings as overrides of the quickstart's, without a place for runs."""
    return lambda *more: [*SMALL, f"model.checkpoint={base_run}", *played, *more]


@pytest.fixture
def muarl(base_run: Path, tmp_path: Path, played: list[str]) -> Callable[..., Any]:
    """``muarl("train", "rl.steps=2")``: the command with the same settings; ``--resume RUN`` goes without them."""
    from typer.testing import CliRunner

    from muarl.cli.main import app

    def run(command: str, *arguments: str) -> Any:
        given = [] if "--resume" in arguments else ["-c", "quickstart", *options(base_run, tmp_path, *played)]
        return CliRunner().invoke(app, [command, *given, *arguments])

    return run


def options(base_run: Path, folder: Path, *more: str) -> list[str]:
    return [*SMALL, f"model.checkpoint={base_run}", f"runs_dir={folder / 'runs'}", *more]


@pytest.fixture
def coin() -> None:
    """The configurations of ``configure``, ``muarl`` and ``small`` play the coin (support/coin.py) in place of retail:
    every episode is right or wrong by its seed, so that every step moves the weights."""
    coins.allow()


@pytest.fixture
def litter() -> Callable[[Path], list[Path]]:
    """What a crash would leave behind in a folder: temporary files and half-written checkpoints."""

    def find(folder: Path) -> list[Path]:
        return [p for p in folder.rglob("*") if p.suffix in (".tmp", ".partial", ".old")]

    return find
