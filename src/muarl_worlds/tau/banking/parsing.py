"""What models write as JSON and as calls, read with the errors of Python 3.12, whichever Python runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_SUGGESTION = re.compile(r"(?<=')\. Did you mean '\w+'\?\Z")
_COMMA = "Illegal trailing comma before end of "
_SPACE = re.compile(r"[ \t\n\r]*")


def parsed(text: Any, **options: Any) -> Any:
    """JSON from text. JSONDecodeError with the words of Python 3.12; TypeError if it is no text."""
    try:
        return json.loads(text, **options)
    except json.JSONDecodeError as problem:
        if not problem.msg.startswith(_COMMA):
            raise
        kind = problem.msg.removeprefix(_COMMA)
        end = _SPACE.match(problem.doc, problem.pos + 1)
        message = "Expecting property name enclosed in double quotes" if kind == "object" else "Expecting value"
        raise json.JSONDecodeError(message, problem.doc, end.end() if end else problem.pos + 1) from None


def called(method: Callable[..., Any], arguments: Any) -> Any:
    """The method's answer to named arguments. TypeError, as TAU2's code raises it, if they do not fit."""
    if not isinstance(arguments, Mapping):
        name = f"tau2.domains.banking_knowledge.tools.{method.__qualname__}"
        raise TypeError(f"{name}() argument after ** must be a mapping, not {type(arguments).__name__}")
    return method(**arguments)


def words_of(problem: TypeError) -> str:
    """An error's text without the suggestion that newer Pythons add to it."""
    return _SUGGESTION.sub("", str(problem))
