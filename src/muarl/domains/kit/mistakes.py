"""How an author is told of a mistake in a declaration: where it is, and what was probably meant."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from muarl.domains.authoring import nearest

_KIT = str(Path(__file__).parent)


def one_of_them(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, else all of them."""
    there = list(names)
    return nearest(name, there) or (f"; there are {', '.join(there)}" if there else "; there are none")


def calling_line() -> str:
    """The line of the author's code that is being run, as " (FILE, line N)"."""
    frame = _calling()
    return "" if frame is None else f" ({frame.f_code.co_filename}, line {frame.f_lineno})"


def calling_place() -> str:
    """The same as "FILE:LINE", without the file's folder."""
    frame = _calling()
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _calling() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_KIT):
        frame = frame.f_back
    return frame


def line_of_plan(plan: Callable[..., Any]) -> str:
    """Where a plan begins, as " (FILE, line N)"; empty if nobody knows."""
    code = getattr(plan, "__code__", None)
    return "" if code is None else f" ({code.co_filename}, line {code.co_firstlineno})"


def line_of(problem: BaseException) -> str:
    """The innermost line of the author's code that an error went through, as " (FILE, line N)"; empty if none did."""
    own = [f for f in traceback.extract_tb(problem.__traceback__) if not f.filename.startswith(_KIT)]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
