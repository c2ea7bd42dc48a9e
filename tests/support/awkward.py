"""Texts of one piece repeated, and which of them take much more time than plain text of the same length."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

LENGTH = 200_000
PLAIN = "The quick brown fox can send 12 boxes to my house on Monday. I would like to know about the order, please. "
SHAPES = (
    "a", "1", "_", ".", "-", "@", "a.", "a@", "a+", "a@b.c+", "a@b.co ", "a_", "1,", "1-", "é",
    " ", "\n", "\n ", "\r", "system ", "system\n", "system]", "admin: ", "ignore all ", "notes for ", "you are now ",
    "'", '"', "\\'", "a=1, ", "a=1#\\', ", "a='b', ", "(", "[", "{", "[1,", "a: b c\n", "a> b c\n", "- a b\n",
    "<scenario>", "</scenario>", "<think>", "<tool_call>", "#W1234567 ", "1234567890 ", "CL-36444 ", "2024-05-15 ",
    "My name is Ann Lee. ", "known info: a\n", "yes ", "|",
)  # fmt: skip


class _TooLong(BaseException):
    pass


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Ends what takes more processor time; an expression, too, which Python can be stopped in."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def too_slow(
    read: Callable[[str], object], length: int, shapes: Sequence[str] = SHAPES, *, besides: float = 3.0
) -> list[str]:
    """The shapes that take more than eight times as long as plain text of this length and some seconds besides: of
    processor time, of all threads of this process."""

    def text(shape: str) -> str:
        return (shape * (length // len(shape) + 1))[:length]

    read("Hello")
    began = time.process_time()
    read(text(PLAIN))
    limit = 8 * (time.process_time() - began) + besides
    slow = []
    for shape in shapes:
        try:
            with processor_time(limit):
                read(text(shape))
        except _TooLong:
            slow.append(shape)
    return slow
