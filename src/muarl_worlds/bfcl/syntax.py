"""Texts of expressions as syntax trees, read alike on every Python; errors are in the words of Python 3.11."""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Iterator

DEEPEST = 120
"""How many levels a tree may have."""


class UnsupportedSyntax(Exception):
    """What this reader does not compute, in words."""


def parse(text: str, *, strip: bool = True) -> ast.expr:
    """The syntax tree of an expression, as ``eval`` would read the text, or without ``strip`` as ``ast`` would.

    ValueError in the words of Python 3.11 if it is none, UnsupportedSyntax if it is too deeply nested.
    """
    if "\0" in text:
        raise ValueError("source code string cannot contain null bytes")
    if _FORMATTED.search(text) and any(not _is_old_form(body) for body in _formatted_strings(text)):
        raise UnsupportedSyntax("f-string: expecting '}' (<string>, line 1)")
    text = text.lstrip(" \t") if strip else text
    try:
        tree = _parsed(text)
    except SyntaxError as problem:
        raise ValueError(_in_old_words(problem)) from None
    except (RecursionError, MemoryError):  # where that begins differs between versions, but is far below
        raise UnsupportedSyntax("the expression is too deeply nested") from None
    if len(text) > DEEPEST and _is_deep(tree):
        raise UnsupportedSyntax("the expression is too deeply nested")
    return tree


def _parsed(text: str) -> ast.expr:
    """The tree, without Python's warnings about the text."""
    if _WARNED_OF.search(text) is None:
        return ast.parse(text, "<string>", "eval").body
    with _quiet, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, "<string>", "eval").body


def _is_deep(tree: ast.AST) -> bool:
    level = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


_quiet = threading.Lock()
_WARNED_OF = re.compile(r"\\|\d[a-zA-Z]")
"""What Python may print a warning about: a backslash, a word right behind a number."""

_FORMATTED = re.compile(r"""[fF][rR]?['"]""")
_LITERAL = re.compile(r"""#[^\n]*|(?<!\w)([a-zA-Z]{0,2})(\"{3}|'{3}|"|')|\w+""")
_NEW_WORDS = {"unterminated f-string literal": "unterminated string literal", "triple-quoted f-": "triple-quoted "}


def _formatted_strings(text: str) -> Iterator[str]:
    """The contents of the f-strings in a text, as Python 3.11 finds them: up to the next quote of the same kind."""
    place = 0
    while (found := _LITERAL.search(text, place)) is not None:
        place = found.end()
        if found[2] is None:
            continue
        raw = re.compile(rf"(?:\\.|(?!{found[2]}).)*", re.DOTALL if len(found[2]) == 3 else 0)
        body = raw.match(text, place)
        assert body is not None
        place = body.end() + len(found[2])
        if "f" in found[1].lower():
            yield body[0]


def _is_old_form(body: str) -> bool:
    """Whether the content of an f-string is one that Python reads alike before and since its version 3.12."""
    inner = body.replace("{{", "").replace("}}", "")
    return "\\" not in body and inner.count("{") == inner.count("}")


def _in_old_words(problem: SyntaxError) -> str:
    """The text of a syntax error as Python 3.11 words it."""
    text = str(problem)
    for new, old in _NEW_WORDS.items():
        text = text.replace(new, old)
    return text.replace("expected argument value expression", "invalid syntax")
