"""The errors a person may meet: each message names file or field and the remedy; the CLI prints no traceback."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class MuarlError(Exception):
    """A problem that the user can fix; its text says what is wrong and what to do. Base of all such errors."""


class ConfigError(MuarlError):
    """An unknown key, a value out of range, an unknown preset."""


class DataError(MuarlError):
    """A data file that is missing, changed or malformed."""


class CheckpointError(MuarlError):
    """A checkpoint that is missing, incomplete or of another architecture."""


class BudgetError(MuarlError):
    """What a run may spend is spent: it has stopped where it can continue, with a larger budget."""


class StoppedBySignError(MuarlError):
    """A training showed a sign that it was to stop for (``rl.stop_on``): it has stopped where it can continue."""


class InfrastructureError(MuarlError):
    """Something outside the policy failed (endpoint, sampler, tool server). Such an episode is excluded, never scored.

    ``boundary`` says whose failure it is: "user", "agent", "judge", "world", "learner". ``retryable`` False means that
    trying again cannot help (a wrong API key, an unknown model), and that the run should end.
    """

    usage: Any = None
    """What the failed request took all the same (an ``episode.Usage``), None where nobody counted."""

    def __init__(self, message: str, *, boundary: str, retryable: bool = True) -> None:
        super().__init__(message)
        self.boundary = boundary
        self.retryable = retryable


def loses_learner(problem: BaseException) -> bool:
    """Whether the learner itself failed, so that its weights are not to be trusted."""
    return isinstance(problem, InfrastructureError) and problem.boundary == "learner"


class OwnCodeError(MuarlError):
    """A bug in code that is not muarl's: of an environment, whose author is told the place."""

    @classmethod
    def of(cls, part: str, bug: Exception, file: str | None) -> OwnCodeError:
        """``part``: whose code it is and which part. The place is the innermost line of ``file``, where the bug went
        through it, else the innermost of all."""
        frames = traceback.extract_tb(bug.__traceback__)
        own = [frame for frame in frames if frame.filename == file] or list(frames)
        place = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
        return cls(f"{part} has a bug: {type(bug).__name__}: {bug}{place}")


@contextmanager
def attributed(part: str, code: Callable[..., Any]) -> Iterator[None]:
    """Within, an unexpected exception becomes an OwnCodeError with the line of the file that ``code`` is defined in."""
    try:
        yield
    except MuarlError:
        raise
    except Exception as bug:
        try:
            file = inspect.getsourcefile(code)
        except TypeError:  # an object with __call__
            file = None
        raise OwnCodeError.of(part, bug, file) from bug
