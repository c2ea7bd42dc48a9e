"""How a process that was asked can fail: it is lost, or it answers with an error, which is raised again here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from muarl.basics import errors
from muarl.basics.errors import InfrastructureError, MuarlError

Method = TypeVar("Method", bound=Callable[..., Any])


class ProcessLost(Exception):
    """Whoever was asked did not answer. ``final``: and never will."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


@dataclass(frozen=True, slots=True)
class Failure:
    """A MuarlError on its way between processes, as plain values."""

    kind: str
    text: str
    boundary: str = ""
    retryable: bool = True

    @classmethod
    def of(cls, problem: MuarlError) -> Failure:
        """What to send of an error."""
        if isinstance(problem, InfrastructureError):
            return cls(type(problem).__name__, str(problem), problem.boundary, problem.retryable)
        return cls(type(problem).__name__, str(problem))

    def error(self) -> MuarlError:
        """The error again; one of a kind that errors.py does not have comes back as the nearest that it has."""
        if self.boundary:
            return InfrastructureError(self.text, boundary=self.boundary, retryable=self.retryable)
        kind = getattr(errors, self.kind, MuarlError)
        return kind(self.text) if isinstance(kind, type) and issubclass(kind, MuarlError) else MuarlError(self.text)


def answering(method: Method) -> Method:
    """An actor's method whose MuarlErrors are answers, as ``Failure``: Ray would raise them as its own, without their
    words."""

    @wraps(method)
    def now(*arguments: Any) -> Any:
        try:
            return method(*arguments)
        except MuarlError as problem:
            return Failure.of(problem)

    @wraps(method)
    async def later(*arguments: Any) -> Any:
        try:
            return await method(*arguments)
        except MuarlError as problem:
            return Failure.of(problem)

    return cast(Method, later if inspect.iscoroutinefunction(method) else now)
