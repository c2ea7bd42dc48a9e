"""A run's token ids as text, by the tokenizer that lies beside its checkpoints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.basics.extras import is_installed

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LARGEST = 64 << 20
"""Bytes of a tokenizer file; a larger one is not read."""


def _byte_letters() -> dict[str, int]:
    """How byte-level tokenizers write bytes as letters (GPT-2's table): printable ones as themselves, the others as
    the letters from U+0100 on."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {chr(b): b for b in kept}
    for n, byte in enumerate(b for b in range(256) if b not in kept):
        letters[chr(256 + n)] = byte
    return letters


_LETTERS = _byte_letters()


def tokenizer_of(run: Path, config: Mapping[str, Any]) -> Tokenizer | None:
    """The tokenizer of a run: of its newest checkpoint, else of the one it started from; None if none is at hand, or
    the package tokenizers is not installed."""
    if not is_installed("tokenizers"):
        return None
    from tokenizers import Tokenizer

    for path in _candidates(run, config):
        try:
            if path.is_file() and path.stat().st_size <= LARGEST:
                return Tokenizer.from_file(str(path))
        except Exception:  # the library raises plain Exceptions for a file that is none
            continue
    return None


def _candidates(run: Path, config: Mapping[str, Any]) -> list[Path]:
    own = sorted(_in_checkpoints(run), key=lambda p: (p.parent.parent.name == "rl", p), reverse=True)
    model = config.get("model")
    name = str(model.get("checkpoint") or "") if isinstance(model, Mapping) else ""
    if not name:
        return own
    if re.fullmatch(r"base(-[a-z]+)?", name):
        return [*own, Path(str(resources.files("muarl") / "assets" / name / "tokenizer.json"))]
    # A relative path is meant from where the run was started: mostly two folders above it (runs/NAME).
    folders = [_expanded(name), run.parent.parent / name]
    return [
        *own,
        *(p for f in folders for p in (f / "tokenizer.json", *sorted(_in_checkpoints(f)))),
    ]


def _expanded(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:  # ~ of somebody who has no home here
        return Path(name)


def _in_checkpoints(folder: Path) -> list[Path]:
    """The tokenizers beside a run's checkpoints. A link in their place is not followed: a run may be somebody else's,
    and the link may lead to /proc, whose files come and go."""
    try:
        return [] if (folder / "checkpoints").is_symlink() else list(folder.glob("checkpoints/**/tokenizer.json"))
    except (OSError, ValueError):  # ValueError: a name that is none, such as one with a NUL
        return []


def pieces(tokenizer: Tokenizer | None, ids: Sequence[int]) -> list[str]:
    """The text of each id by itself, bytes that are no whole letter as \\xNN; without a tokenizer, the id."""
    if tokenizer is None:
        return [f"{i}" for i in ids]
    known: dict[int, str] = {}
    for i in set(ids):
        text = tokenizer.id_to_token(i) if 0 <= i < 1 << 31 else None
        if text is None:
            known[i] = f"⟨{i}⟩"
        elif all(c in _LETTERS for c in text):
            known[i] = bytes(_LETTERS[c] for c in text).decode("utf-8", "backslashreplace")
        else:
            known[i] = text
    return [known[i] for i in ids]
