"""What is shared where a conversation is copied (``Conversation.fork``), and copies that say what cannot be copied."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Self, TypeVar

from muarl import moved
from muarl.basics.errors import ConfigError


class SharedInCopies:
    """Base of what never changes, or serves many: a deep copy of what holds it holds the same object."""

    __slots__ = ()

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Self:
        return self


T = TypeVar("T")


def shared(*things: object) -> dict[int, Any]:
    """A memo for ``copied`` by which these are in the copy what they are."""
    return {id(one): one for one in things}


def copied(what: str, thing: T, memo: dict[int, Any]) -> T:
    """A deep copy that holds the same objects where they are ``SharedInCopies`` by their class, or in ``memo``, which
    says by identity what has been copied to what.

    ConfigError, which says what ``what`` is and why, for what cannot be copied: a lock, a process, a connection.
    """
    try:
        return deepcopy(thing, memo)
    except ConfigError as problem:
        raise ConfigError(f"{what} cannot be copied: {problem}") from None
    except Exception as problem:
        raise ConfigError(
            f"{what} cannot be copied: {problem}. Let the class of what it holds say what a copy of it is, by a method "
            "__deepcopy__, or inherit from muarl.basics.copies.SharedInCopies"
        ) from problem


moved.keep_old_names(__name__)
