"""BFCL's multi-turn benchmark (ShishirPatil/gorilla, Apache-2.0): official tasks, prompts, decoding and scores.

Two revisions, which differ in tools, semantics and data: "v3" is bfcl-eval 2025.8.6.2, "v4" is 2026.3.23. How BFCL
plays an entry: the user's turns are fixed. In each the model acts until it writes a message without calls, or one whose
calls cannot be read; after more than ``MAX_STEPS`` messages with calls in one turn the whole entry ends.
"""

from __future__ import annotations

from muarl_worlds.bfcl.official.checker import CheckResult, judge
from muarl_worlds.bfcl.official.codecs import PromptCodec, QwenCodec
from muarl_worlds.bfcl.official.results import read_results, replay_row, score_row
from muarl_worlds.bfcl.official.scoring import do_nothing, score, summary, turn_calls
from muarl_worlds.bfcl.official.strict import Strict, strict
from muarl_worlds.bfcl.official.tasks import CATEGORIES, SPLITS, ground_truth, splits, task, tasks, user_lines
from muarl_worlds.bfcl.official.toolspecs import DOMAINS, NAME, offered_after
from muarl_worlds.bfcl.official.worlds import domain

__all__ = [
    "CATEGORIES", "DOMAINS", "MAX_STEPS", "NAME", "SPLITS", "CheckResult", "PromptCodec", "QwenCodec", "Strict",
    "do_nothing", "domain", "ground_truth", "judge", "offered_after", "read_results", "replay_row", "score",
    "score_row", "splits", "strict", "summary", "task", "tasks", "turn_calls", "user_lines",
]  # fmt: skip

MAX_STEPS = 20
"""How many messages with calls a turn may have; one more is still answered."""
