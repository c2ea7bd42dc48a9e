"""How an episode is played: where it is cut (Limits), and what its messages do (Rules)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import walk_tb
from typing import ClassVar

from muarl.basics.errors import InfrastructureError, MuarlError, OwnCodeError
from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.types.chat import GREETING, STOP_WORDS, Message, Requestor, ToolCall, is_stop
from muarl.types.episode import StopReason


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a conversation is cut off: turns of the agent, failed tool calls. None: nowhere.

    Tokens a turn and context are limits of the agent (``SampledAgent``).
    """

    turns: int | None = 30
    """How often the agent may act; each of its messages counts as one, whether it speaks or calls tools, however many
    calls it makes. The user still answers the last one."""
    tool_errors: int | None = 10
    """That many failed calls, both sides together, end the episode after the message that made them."""
    user_calls: int | None = 30
    """How many messages with tool calls a user may write in a row; more are a broken simulator."""
    steps: int | None = None
    """TAU2's own count. Every message of either side is a step, and so are the results of its calls together; the
    greeting is none. It is looked at when the word passes to a participant, never between calls and their results, and
    it outdoes a stop word: a user who ends the conversation with the very last step has not ended it."""
    agent_calls: int | None = None
    """How many messages with tool calls the agent may write in a row. One more is still answered, and then the episode
    is cut (BFCL's 20)."""


@dataclass(frozen=True)
class Rules:
    """What messages do in a conversation: what the greeting is, and what ends it. As it stands, muarl's own way.

    To change anything else, override a method in a subclass, as the benchmarks do (environments/benchmark.py). Rules
    hold no state: one object serves all episodes of a run, and is sent to the workers of a cluster.
    """

    greeting: str = GREETING
    """What the agent is taken to have said first."""
    greeting_in_context: bool = True
    """Whether the agent's own context begins with it, or only the user sees it."""
    transfer_ends: bool = False
    """Whether a successful call of one of ``transfer_tools`` ends the episode, rather than leaving that to the user's
    ###TRANSFER###."""
    transfer_tools: tuple[str, ...] = ("transfer_to_human_agents",)
    stop_words: tuple[str, ...] = STOP_WORDS
    """What ends the episode in a user's message without calls."""

    solo: ClassVar[bool] = False
    """Whether the agent works alone, with nobody to talk to."""

    def transfer_tool(self, names: Iterable[str]) -> str | None:
        """Which of these tools hands the user over to a person: one of ``transfer_tools`` where they have been named,
        else the first that begins with "transfer"; None if none does."""
        named = self.transfer_tools != Rules.transfer_tools
        return next((n for n in names if (n in self.transfer_tools if named else n.startswith("transfer"))), None)

    def opening(self, task: Task) -> tuple[list[Message], Requestor]:
        """The messages that the episode begins with, and whose turn it is then."""
        before = list(task.history) or [Message("assistant", self.greeting)]
        last = before[-1]
        to_user = last.role == "assistant" or (last.role == "tool" and last.requestor == "user")
        return before, "user" if to_user else "assistant"

    def read_agent(self, message: Message, stop: StopReason | None, steps: int) -> tuple[Message, StopReason | None]:
        """The agent's message as it counts, and how it ends the episode, if it does.

        ``stop``: how its generation ended the episode, such as ``turn_length``. ``steps``: how many steps went before
        (see ``Limits.steps``). Here nothing at all ends it (``empty_reply``), and a call that cannot be read is run
        like any other, so that the agent reads the error. VoidReply voids the whole attempt.
        """
        return message, StopReason.EMPTY_REPLY if stop is None and is_empty(message) else stop

    def calls_to_run(self, message: Message) -> tuple[ToolCall, ...]:
        """The calls of an agent's message that are run. Where there are none, it is the user's turn."""
        return message.tool_calls

    def side_of(self, call: ToolCall, domain: Domain) -> Requestor:
        """Whose tools a call of the agent is for."""
        return "assistant"

    def after_results(self, results: Sequence[Message]) -> StopReason | None:
        """How the results of an agent's calls end the episode, if they do."""
        handed_over = any(m.name in self.transfer_tools and not m.error for m in results)
        return StopReason.TRANSFER if self.transfer_ends and handed_over else None

    def check_user(self, message: Message) -> None:
        """InfrastructureError if a user's message cannot be used."""
        if is_empty(message):
            raise InfrastructureError("the simulated user said nothing", boundary="user")

    def user_stops(self, message: Message, steps: int, spoken: int) -> bool:
        """Whether a user's message without calls ends the conversation. ``steps``: as in ``read_agent``; ``spoken``:
        how often the user has spoken in this episode, this message included."""
        return is_stop(message, self.stop_words)


def is_empty(message: Message) -> bool:
    """Whether there is nothing in a message."""
    return not message.tool_calls and not (message.content or "").strip()


@contextmanager
def bugs_named(rules: Rules, domain: str) -> Iterator[None]:
    """Within, an unexpected exception out of a method of these rules becomes an OwnCodeError, which says so to their
    author; any other passes through."""
    try:
        yield
    except MuarlError:
        raise
    except Exception as bug:
        frames = [frame for frame, _ in walk_tb(bug.__traceback__) if frame.f_locals.get("self") is rules]
        if not frames:
            raise
        code = frames[0].f_code
        where = f"environment {domain}: its rules ({type(rules).__name__}.{code.co_name})"
        raise OwnCodeError.of(where, bug, code.co_filename) from bug


class VoidReply(InfrastructureError):
    """A reply that voids the attempt, which is then no result: nothing is out of order but the model that wrote it."""


class LenientRules(Rules):
    """A message that is empty, that was cut, or with a call that cannot be read is as good as words: the user is next
    (BFCL, ACEBench)."""

    def read_agent(self, message: Message, stop: StopReason | None, steps: int) -> tuple[Message, StopReason | None]:
        """Only a full context ends the episode."""
        return message, None if stop in (StopReason.EMPTY_REPLY, StopReason.TURN_LENGTH) else stop

    def calls_to_run(self, message: Message) -> tuple[ToolCall, ...]:
        """None, if one of them cannot be read."""
        return () if any(c.invalid is not None for c in message.tool_calls) else message.tool_calls

    def check_user(self, message: Message) -> None:
        """A user may say nothing, too."""
