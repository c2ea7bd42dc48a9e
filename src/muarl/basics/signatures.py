"""What functions of other people's can be called with, as far as their signatures tell."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def takes(function: Callable[..., Any], *args: object, **named: object) -> bool:
    """Whether a function can be called with these arguments, as far as its signature tells."""
    try:
        inspect.signature(function).bind(*args, **named)
    except TypeError:
        return False
    except ValueError:  # it has no signature that could be read
        return True
    return True


def named_arguments(function: Callable[..., Any], *others: str) -> frozenset[str]:
    """The arguments that a function names, with the ``others`` where it takes any by ``**``."""
    parameters = inspect.signature(function).parameters.values()
    every = others if any(p.kind == p.VAR_KEYWORD for p in parameters) else ()
    return frozenset(every) | {p.name for p in parameters}


def only(offered: Mapping[str, Any], named: frozenset[str]) -> dict[str, Any]:
    """Of what is offered, what a function names."""
    return {name: value for name, value in offered.items() if name in named}
