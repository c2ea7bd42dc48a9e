"""BFCL's tools for generated tasks: which tools are offered, worlds that mind it, and tiny worlds' compact answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from muarl.domains.tasks import Task
from muarl.types.chat import Message, Requestor, ToolCall, ToolResult, ToolSpec
from muarl_worlds.bfcl.api import Revision
from muarl_worlds.bfcl.domain import Bfcl, BfclWorld, withheld
from muarl_worlds.bfcl.observations import compact
from muarl_worlds.bfcl.scenes import SIZES

REVISION: Revision = "v4"
TINY_TOOLS = (
    "cd", "mkdir", "mv", "cp", "rm", "get_user_id", "send_message", "delete_message", "search_tweets", "retweet",
    "create_ticket", "close_ticket", "resolve_ticket", "get_symbol_by_name", "get_stock_info", "place_order",
    "cancel_order", "add_to_watchlist",
)  # fmt: skip
"""The tools of tiny worlds; others offer all tools of a task's classes."""


class GeneratedBfcl(Bfcl):
    """BFCL's tools as generated tasks of a size offer them."""

    def __init__(self, size: str) -> None:
        self.size = size
        name = "policy_generated_compact.md" if size == "tiny" else "policy_generated.md"
        policy = (Path(__file__).parent / name).read_text(encoding="utf-8").strip()
        super().__init__(REVISION, policy=policy, semantics="fixed")
        if size == "tiny":
            self._tools = {name: tool for name, tool in self._tools.items() if name in TINY_TOOLS}

    def specs_for(self, task: Task) -> tuple[ToolSpec, ...]:
        """The tools that the agent is offered at the start of a task."""
        return tuple(spec for spec in super().specs_for(task) if spec.name in self._tools)

    def world(self, task: Task | None = None) -> GeneratedWorld:
        """The fresh state of one episode."""
        return GeneratedWorld(self, task)


class GeneratedWorld(BfclWorld):
    """One episode. Tools that a task does not offer do not work, those that the user brings only from then on.

    In a conversation, which ``hear`` tells of, a call of a tool that the user has yet to bring is an error that leaves
    its mark on the state: the task then cannot be solved any more. Calls outside of one find all tools of the task.
    """

    __slots__ = ("_later", "_turn", "spoiled")

    def __init__(self, domain: GeneratedBfcl, task: Task | None) -> None:
        super().__init__(domain, task)
        self._later = {} if task is None else {n: turn for turn, names in withheld(task).items() for n in names}
        self._turn: int | None = None
        self.spoiled = False

    def hear(self, message: Message) -> None:
        """The user has said something to the agent."""
        self._turn = 0 if self._turn is None else self._turn + 1

    def call(self, requestor: Requestor, call: ToolCall) -> ToolResult:
        """Run one tool call."""
        assert isinstance(self.domain, GeneratedBfcl)
        missing = self._turn is not None and self._turn < self._later.get(call.name, 0)
        self.spoiled |= missing
        if call.invalid is None and (missing or call.name not in self.domain._tools):
            return ToolResult(f"Error: there is no tool {call.name!r}.", True)
        result = super().call(requestor, call)
        if self.domain.size != "tiny" or call.invalid is not None or result.content.startswith("Error"):
            return result
        return ToolResult(compact(call.name, call.arguments, result.content), result.error)

    def digest(self) -> str:
        """64 hex digits of the state, and a mark if a tool was called that the user had yet to bring."""
        return super().digest() + ("!" if self.spoiled else "")


@lru_cache(maxsize=8)
def generated_bfcl(size: str = "tiny") -> GeneratedBfcl:
    """The domain that tasks of ``generator`` run in. Tiny: 18 tools, a compact policy and compact observations.

    What a tool takes and does is the same at every size. ValueError for an unknown size.
    """
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, not {size!r}")
    return GeneratedBfcl(size)


def turn_lines(task: Task) -> Sequence[tuple[str, tuple[ToolSpec, ...]]]:
    """What the user of a generated task says turn by turn, and the tools that come with it."""
    specs, later = every_spec(), withheld(task)
    turns: Sequence[Any] = (task.agenda or {})["turns"]
    return [(text, tuple(specs[name] for name in later.get(n, ()))) for n, text in enumerate(turns)]


@cache
def every_spec() -> Mapping[str, ToolSpec]:
    """All tools by name."""
    return {spec.name: spec for spec in generated_bfcl("official").tool_specs()}
