"""How an episode is played: where it is cut, and what differs between benchmarks' ways of playing one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from muarl.chat import GREETING, STOP_WORDS, ToolSpec
from muarl.episode import StopReason
from muarl.errors import InfrastructureError


@dataclass(frozen=True, slots=True)
class Limits:
    """Where an episode is cut; None: nowhere. Tokens a turn and context are limits of the agent (agents.sampled).

    ``turns``: how often the agent may act; each of its messages counts as one, whether it speaks or calls tools,
    however many calls it makes. The user still answers the last one. ``tool_errors``: that many failed calls, both
    sides together, end the episode after the message that made them. ``user_calls``: how many messages with tool calls
    a user may write in a row; more are a broken simulator.

    ``agent_calls``: how many messages with tool calls the agent may write in a row. One more is still answered, and
    then the episode is cut (BFCL's 20).

    ``steps``: TAU2's own count. Every message of either side is a step, and so are the results of its calls together;
    the greeting is none. It is looked at when the word passes to a participant, never between calls and their results,
    and it outdoes a stop word: a user who ends the conversation with the very last step has not ended it.
    """

    turns: int | None = 30
    tool_errors: int | None = 10
    user_calls: int | None = 30
    steps: int | None = None
    agent_calls: int | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What differs between ways of playing an episode. The defaults are TAU2's, but for ``broken``.

    ``greeting``: what the agent is taken to have said first. ``greeting_in_context``: whether the agent's own context
    begins with it (TAU2) or only the user sees it (TAU1, MUA-RL's training). ``transfer_ends``: whether a call of one
    of ``transfer_tools`` that succeeds ends the episode, rather than leaving that to the user's ###TRANSFER###; "any":
    one that fails, too (TAU1). ``fatal``: a result whose text begins so ends the episode (TAU1 breaks off at some).
    ``stop_words``: what ends the episode in a user's message without calls; ``first_may_stop``: in its first one too.
    ``one_call``: only the first call of an agent's message counts, as if the others had never been written (TAU1).

    ``broken``: what becomes of an agent's message with nothing in it, or with a call that cannot be read. "answered":
    nothing ends the episode (``empty_reply``), and such a call gets an error to read. "aborts": the attempt is void,
    for a user's message too, and the episode an infrastructure failure (TAU2). "ends": such a call ends the episode, as
    does a message without any text; a text of nothing is passed on, a user's too (TAU1). "passes": a message that is
    empty, was cut, or has a call that cannot be read is as good as words, so that the user is next (BFCL, ACEBench).
    "skips": the same, but only the calls that cannot be read are passed over (BFCL with Qwen).

    ``agent_may_stop``: a stop word in the agent's words, beside calls too, which are then not run, ends the episode
    (ACEBench). ``stop_after``: how many steps
    (see ``Limits.steps``) must have gone before for a stop word to count.

    ``solo``: the agent works alone, with the user's tools beside its own, until it calls ``done`` (TAU2).
    """

    greeting: str = GREETING
    greeting_in_context: bool = True
    transfer_ends: bool | Literal["any"] = False
    transfer_tools: tuple[str, ...] = ("transfer_to_human_agents",)
    stop_words: tuple[str, ...] = STOP_WORDS
    first_may_stop: bool = True
    one_call: bool = False
    fatal: tuple[str, ...] = ()
    broken: Literal["answered", "aborts", "ends", "passes", "skips"] = "answered"
    agent_may_stop: bool = False
    stop_after: int = 0
    solo: bool = False

    @property
    def lenient(self) -> bool:
        """Whether a broken message is as good as words."""
        return self.broken in ("passes", "skips")


PASSED_ON = (StopReason.EMPTY_REPLY, StopReason.TURN_LENGTH)
"""What does not end an episode where broken messages pass the word on."""


class VoidReply(InfrastructureError):
    """A reply that voids the attempt (see Rules.broken): nothing is out of order but the model that wrote it."""


DONE = ToolSpec(
    "done",
    "Call this function when you are done with the task.",
    {"properties": {}, "title": "parameters", "type": "object"},
)
"""The tool with which an agent that works alone says so (TAU2's, to the letter)."""
