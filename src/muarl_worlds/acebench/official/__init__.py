"""ACEBench Agent (ACEBench/ACEBench, MIT licence): official tasks, prompts and scores in English and Chinese.

How upstream plays an episode. Multi-turn: the user, played by a model, is asked ``OPENING`` and speaks first; a message
of the agent's goes to the executor if calls can be read in it, else to the user. Multi-step: the agent works alone, and
what cannot be read as calls is answered ``NO_QUESTIONS``. After the user's first message there are at most ``MESSAGES``
of agent, user and executor, and ``STOP`` ends the conversation (``stops``). However it ends, the final state is scored.
"""

from __future__ import annotations

from muarl_worlds.acebench.execute import NO_QUESTIONS
from muarl_worlds.acebench.official.codec import TextCodec, codec, serialized
from muarl_worlds.acebench.official.prompts import (
    AGENT_SETTINGS,
    FIRST_STOP,
    MESSAGES,
    OPENING,
    STOP,
    USER_SETTINGS,
    agent_request,
    agent_system,
    scripted_line,
    stops,
    user_messages,
    user_system,
    without_prefix,
)
from muarl_worlds.acebench.official.results import AceBenchResults, is_result_file, read_process_file, read_results
from muarl_worlds.acebench.official.rows import replay_row, score_row
from muarl_worlds.acebench.official.tasks import CATEGORIES, DOMAINS, NAME, SPLITS, domain, task, task_from_json, tasks
from muarl_worlds.acebench.official.verdicts import do_nothing, executed, figures, score, score_messages, summary

__all__ = [
    "AGENT_SETTINGS", "CATEGORIES", "DOMAINS", "FIRST_STOP", "MESSAGES", "NAME", "NO_QUESTIONS", "OPENING", "SPLITS",
    "STOP", "USER_SETTINGS", "AceBenchResults", "TextCodec", "agent_request", "agent_system", "codec", "do_nothing",
    "domain", "executed", "figures", "is_result_file", "read_process_file", "read_results", "replay_row", "score",
    "score_messages", "score_row", "scripted_line", "serialized", "stops", "summary", "task", "task_from_json",
    "tasks", "user_messages", "user_system", "without_prefix",
]  # fmt: skip
