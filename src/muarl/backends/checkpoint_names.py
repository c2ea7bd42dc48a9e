"""What a checkpoint may be called: one that comes with muarl, a run, a folder; and what an agent is called by it.

Light: a misspelt name is told before torch is imported.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import resources
from pathlib import Path

from muarl.backends.pretrained import PRETRAINED, folder_of, missing
from muarl.basics.errors import CheckpointError
from muarl.learning.checkpoint_folders import STEP, check_kind, latest_checkpoint

SHIPPED = {"base": "quickstart", "base-airline": "airline", "base-telecom": "telecom", "base-worlds": "worlds"}
"""The small base checkpoints that come with muarl, and the preset that each was made by and goes with."""

RUNS = Path("runs")
"""Where runs are looked for whose names resemble a misspelt one."""

_HOSTED = re.compile(r"(gpt|o\d|claude|gemini|mistral|deepseek|llama|grok|command)-?[\w.:-]*", re.IGNORECASE)
"""Names of models that are behind somebody's API, never a folder."""


def checkpoint_folder(spec: str) -> Path:
    """The folder that a checkpoint's name stands for.

    ``base``, ``base-airline``, ``base-telecom``, ``base-worlds``: the checkpoints shipped with muarl. ``smollm2`` and
    others that `muarl model` fetched or imported: their names. A checkpoint folder: itself. A run, RUN/checkpoints or
    RUN/checkpoints/last: its newest checkpoint of reinforcement learning
    (checkpoints/rl/step-N) if it has one, else of the cold start (checkpoints/step-N), else its base checkpoint
    (checkpoints/base). CheckpointError if a run has none.
    """
    if spec in SHIPPED:
        folder = _asset(spec)
        if not (folder / "config.json").is_file():
            raise CheckpointError(
                f"the checkpoint {spec} is not part of this installation: make one with `muarl base --config "
                f"{SHIPPED[spec]}`, then pass its folder"
            )
        return folder
    path = Path(spec).expanduser()
    if (path / "config.json").is_file():
        return path
    fetched = folder_of(spec)
    if fetched is not None:
        return fetched
    if path.name == "last" and not path.exists():
        root = path.parent
    elif path.name == "checkpoints":
        root = path
    else:
        root = path / "checkpoints"
    if not root.is_dir():
        return path  # whoever loads it says what is missing
    base = root / "base"
    newest = latest_checkpoint(root / "rl") or latest_checkpoint(root) or (base if base.is_dir() else None)
    if newest is None:
        raise CheckpointError(f"{root}: holds no whole checkpoint: {_why_none(root)}")
    return newest


def shipped_with(spec: str) -> tuple[str, ...]:
    """The environments that a shipped checkpoint was made on and goes with."""
    from muarl.config.load import load_config  # no other question about a name reads a configuration

    return tuple(domain.name for domain in load_config(SHIPPED[spec]).domains)


def is_shipped(spec: str) -> bool:
    """Whether this is the name of a checkpoint that is part of this installation."""
    return spec in SHIPPED and (_asset(spec) / "config.json").is_file()


def existing_checkpoint(spec: str, words: Iterable[str] = ()) -> Path:
    """As ``checkpoint_folder``, of a folder that is there and of a kind that can be used. CheckpointError with the
    nearest run or checkpoint, or with the remedy, if not. ``words``: what else may have been meant, such as expert."""
    if spec.startswith("endpoint:"):
        raise CheckpointError(
            f"{spec}: is a model behind a server, and what is needed here is a checkpoint: a run or a folder. "
            "`muarl eval` and `muarl chat` take such a model as the agent (muarl eval --agent endpoint:MODEL@URL)"
        )
    folder = checkpoint_folder(spec)
    if folder.is_dir():
        check_kind(folder)
        return folder
    if (unfetched := missing(spec)) is not None:
        raise unfetched
    from muarl.planning.models import published  # only to name the way to get one

    if published(spec) is not None:
        raise CheckpointError(
            f"{spec}: is not on this machine. Fetch it first, such as by `hf download {spec} --local-dir {spec}`, then "
            "give its folder"
        )
    hosted = _HOSTED.fullmatch(spec) is not None
    near = [] if hosted else difflib.get_close_matches(spec.rstrip("/"), sorted({*words, *_known(folder)}), 3, 0.6)
    if near:
        hint = f"; did you mean {' or '.join(near)}?"
    else:
        hint = "" if hosted else ": give a run (runs/NAME) or the path of a folder with config.json"
        hint += "" if "/" in spec else f". An agent behind a server is endpoint:{spec}"
    raise CheckpointError(f"{spec}: no such checkpoint folder{hint}")


def _why_none(root: Path) -> str:
    """Why a run's folder of checkpoints may be empty."""
    if next((root.parent / "episodes").glob("eval.jsonl*"), None) is not None:
        return "the run is an evaluation, which trains nothing"
    return "the run ended before it wrote one"


def run_of(folder: Path) -> Path | None:
    """The run that a checkpoint's folder is of; None if it lies in no run's ``checkpoints``."""
    parents = list(Path(folder).absolute().parents)[:3]
    return next((p.parent for p in parents if p.name == "checkpoints" and (p.parent / "config.yaml").is_file()), None)


def checkpoint_name(folder: Path, *, run: bool = True) -> str:
    """A checkpoint's name for people: ``mine (RL step 65)``, ``mine (SFT step 60)``, ``base``, or its folder's name.
    ``run`` False: without the run's own name."""
    folder = Path(folder)
    if folder.name in SHIPPED and folder == _asset(folder.name):
        return folder.name
    step, of = STEP.fullmatch(folder.name), run_of(folder)
    if of is None:
        return folder.absolute().name
    stage = folder.name
    if step is not None:
        stage = f"{'RL' if folder.absolute().parent.name == 'rl' else 'SFT'} step {int(step[1])}"
    return f"{of.name} ({stage})" if run else stage


def _asset(name: str) -> Path:
    return Path(str(resources.files("muarl") / "assets" / name))


def _known(missing: Path) -> Iterator[str]:
    """Names that a misspelt one may have been meant for: the shipped ones, runs, and what lies beside it."""
    yield from SHIPPED
    yield from PRETRAINED
    for place in {RUNS, missing.parent, missing.parent.parent}:
        with suppress(OSError):  # a folder that may not be read has no names to offer
            candidates = (p for p in place.iterdir() if any(p.glob("checkpoints/*")) or (p / "config.json").is_file())
            yield from (str(p) for _, p in zip(range(1000), candidates, strict=False))
