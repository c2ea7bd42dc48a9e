"""The words of tiny BFCL worlds that the tiny model's tokenizer makes one token each (recipes/tiny.py)."""

from __future__ import annotations

import re

from muarl_worlds.bfcl import expert, pools
from muarl_worlds.bfcl.recipes_files import ROOT
from muarl_worlds.bfcl.requests import BRINGS, NOW, RECIPES, tiny_texts
from muarl_worlds.bfcl.scenes import SIZES, limited

OBSERVATION_PIECES = (" at $", "order ", "ticket ", "none", "ok", ", ")
CALL_PIECES = (
    '\n{"name": "close_ticket", "arguments": {"ticket_id": ',
    '\n{"name": "resolve_ticket", "arguments": {"ticket_id": ',
    '\n{"name": "cancel_order", "arguments": {"order_id": ', '\n{"name": "retweet", "arguments": {"tweet_id": ',
    ', "resolution": "', '", "priority": ', '", "price": ', ', "amount": ', "}}\n",
)  # fmt: skip
"""Calls, and joints between arguments, that have numbers in them."""
_TINY = SIZES["tiny"]
_POOLS = (
    pools.FOLDERS, pools.FILES, pools.NEW_FILES, pools.NEW_FOLDERS, pools.PEOPLE, pools.USER_IDS, pools.TEXTS,
    pools.SUBJECTS, pools.POST_IDS, pools.TITLES, pools.TICKET_IDS, pools.RESOLUTIONS, pools.ORDER_IDS,
)  # fmt: skip


def entities() -> list[str]:
    """What must be one token wherever it stands: names, ids, texts, prices and amounts of the tiny worlds."""
    pieces = [word for pool in _POOLS for word in limited(pool, _TINY)]
    pieces += [ROOT, "..", *pools.COMPANIES, *pools.SYMBOLS.values(), *pools.PRICES, *pools.AMOUNTS, *"12345"]
    for recipe in (r for r in RECIPES.values() if r.tiny):
        pieces += [guess for name in recipe.missing for guess in recipe.slot(name).guess]
    return list(dict.fromkeys([*pieces, "Buy"]))


def phrases() -> list[str]:
    """Fixed pieces of compact observations and of calls, and all that users and experts say around the names."""
    pieces = [*OBSERVATION_PIECES, *CALL_PIECES, expert.DONE, expert.NO_TOOL, expert.REFUSAL, BRINGS[0], f"\n{NOW}"]
    for recipe in (r for r in RECIPES.values() if r.tiny):
        pieces += [str(recipe.slot(name).ask) for name in recipe.missing]
    pieces += [piece for text in tiny_texts() for piece in re.split(r"\{\w*\}", text)]
    return [piece for piece in dict.fromkeys(pieces) if piece]
