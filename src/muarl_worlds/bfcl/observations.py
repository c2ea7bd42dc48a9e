"""What tools answer, as an agent reads it: JSON or what Python writes, and the few words of tiny worlds."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from muarl.domains.kit.records import PLACE, fill

COMPACT: Mapping[str, str] = {
    "cd": "{current_working_directory}", "get_user_id": "{user_id}", "get_symbol_by_name": "{symbol}",
    "get_stock_info": "{symbol} at ${price}", "place_order": "order {order_id}", "create_ticket": "ticket {id}",
}  # fmt: skip
"""What tools answer in tiny worlds, from their arguments and answers; others say "ok". An id that was looked up stands
alone, so that a tiny model can learn to copy it."""


def value_of(text: str) -> Any:
    """What a tool gave, from its text: JSON, or what Python writes."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text


def compact(tool: str, arguments: Mapping[str, Any], text: str) -> str:
    """A tool's answer in as few words as can be, for tiny worlds."""
    value = value_of(text)
    if isinstance(value, dict) and "error" in value:
        return f"error: {value['error']}"
    if tool == "search_tweets":
        return ", ".join(str(post["id"]) for post in value) or "none"
    if tool not in COMPACT or not value:
        return "ok"
    return fill(COMPACT[tool], {**arguments, **value})


def observed(tool: str, text: str) -> Any:
    """What a tool gave, in JSON or compact words, as far as a plan asks for it."""
    if tool == "search_tweets" and not text.startswith("["):
        return [{"id": int(n)} for n in re.findall(r"\d+", text)]
    if tool not in COMPACT or text.startswith("{"):
        return value_of(text)
    form = PLACE.sub(r"(?P<\1>[\\w.]+)", COMPACT[tool].replace("$", r"\$"))
    found = re.fullmatch(form, text)
    return {key: _number(word) for key, word in found.groupdict().items()} if found else {}


def _number(word: str) -> Any:
    return int(word) if word.isdecimal() else float(word) if re.fullmatch(r"\d+\.\d+", word) else word
