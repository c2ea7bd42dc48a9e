"""A scripted agent for generated BFCL tasks: near-perfect, with bad habits that make imperfect demonstrations.

It reads only what any agent reads: the user's words, the tools it has been given, and what its calls gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muarl.chat import Message, ToolSpec
from muarl.domains.bfcl.reading import Frame, observed, read_reply, read_requests, read_tools
from muarl.domains.bfcl.recipes import Memory, Plan, Step
from muarl.domains.bfcl.wishes import ALL
from muarl.domains.experts import Habits
from muarl.domains.scripted import ScriptedExpert

DONE = "Done."
NO_TOOL = "I have no tool for that."
REFUSAL = "I cannot help with that."
SLIPS = {
    "get_user_id": "user", "cd": "folder", "mv": "source", "rm": "file_name", "cp": "source", "cat": "file_name",
    "close_ticket": "ticket_id", "resolve_ticket": "ticket_id", "cancel_order": "order_id",
}  # fmt: skip
"""Arguments that may be got wrong: the tool's error is then seen and mended."""


class BfclExpert(ScriptedExpert[Frame]):
    """One conversation's worth of expert. ``act`` takes the new messages and gives the next one.

    Which tools it has it learns from ``offer`` and from documents in the user's words; told of none, it takes it that
    it has them all. Of the bad habits it has ``forget_second``, ``guess`` (a missing value), ``slip``,
    ``try_forbidden`` (calls a tool that it has not been given) and ``needless_transfer``: there is nobody to hand over
    to, so it refuses all along.
    """

    def __init__(self, *, seed: int, habits: Habits = Habits()) -> None:
        super().__init__("bfcl", seed=seed, habits=habits)
        self._tools: set[str] | None = None
        self._memory: Memory = {}
        self._plan: Plan | None = None
        self._step: Step | None = None
        self._seen: Any = None
        self._said: list[str] = []
        self._forced = False

    def offer(self, tools: Sequence[ToolSpec]) -> None:
        """Tools that it has from now on, beside those it had."""
        self._tools = (self._tools or set()) | {spec.name for spec in tools}

    # what came in

    def _listen(self, text: str) -> None:
        brought = read_tools(text)
        if brought:
            self._tools = None if self._tools is None else self._tools | set(brought)
            self._waiting = ""
            return
        frame = self._frames[0] if self._frames else None
        if self._waiting == "value" and frame is not None:
            value = read_reply(text, frame.lacks, ALL[frame.kind].missing[frame.lacks])
            if value is not None:
                frame.slots[frame.lacks] = value
                frame.lacks = self._waiting = ""
                return
        frames = read_requests(text)
        if len([f for f in frames if not f.kind.endswith(("_login", "_token"))]) > 1 and self._has("forget_second"):
            del frames[-1]
        if frames and self._waiting:  # the user has moved on
            self._frames, self._plan, self._step = [], None, None
        self._waiting = ""
        self._frames += frames

    def _observe(self, message: Message) -> None:
        if self._step is None:
            return
        if message.error:
            if self._forced:  # the tool was not there after all
                self._forced, self._waiting = False, "tool"
            elif not self._slipped:
                self._finish("I could not do that.")
            return
        self._seen = observed(self._step[0], message.content or "")
        self._step, self._slipped, self._forced = None, False, False

    # what goes out

    def _decide(self) -> Message:
        if self._transfer:
            return Message("assistant", REFUSAL)
        while self._frames and not self._waiting:
            if self._plan is None:
                self._begin(self._frames[0])
                continue
            if self._step is None and not self._advance():
                continue
            assert self._step is not None
            name, arguments = self._step
            if self._tools is not None and name not in self._tools:
                self._forced = self._has("try_forbidden")
                if not self._forced:
                    self._waiting = "tool"
                    break
            return self._do(name, arguments)
        said, self._said = self._said, []
        if self._waiting == "tool":
            said.append(NO_TOOL)
        elif self._waiting == "value":
            frame = self._frames[0]
            said.append(ALL[frame.kind].missing[frame.lacks].ask)
        return Message("assistant", " ".join(said) or DONE)

    def _begin(self, frame: Frame) -> None:
        """Start to serve a request, unless a value must be asked for first."""
        recipe = ALL[frame.kind]
        if frame.lacks:
            if not self._has("guess"):
                self._waiting = "value"
                return
            frame.slots[frame.lacks] = self._rng.choice(recipe.missing[frame.lacks].guesses)
        self._plan, self._seen, self._step = recipe.plan(frame.slots, self._memory), None, None

    def _advance(self) -> bool:
        """Find the plan's next step; False if it has come to its end."""
        assert self._plan is not None
        try:
            self._step = self._plan.send(self._seen)
        except StopIteration as end:
            self._finish(end.value[0])
            return False
        except (KeyError, IndexError, TypeError, ValueError):  # a tool's answer is not what the request took it to be
            self._finish("I could not do that.")
            return False
        return True

    def _finish(self, said: str) -> None:
        if said:
            self._said.append(said)
        del self._frames[:1]
        self._plan, self._step = None, None

    def _do(self, name: str, arguments: dict[str, Any]) -> Message:
        argument = SLIPS.get(name)
        if argument is not None and not self._slipped and arguments[argument] != ".." and self._has("slip"):
            self._slipped = True
            arguments = {**arguments, argument: _slightly_wrong(arguments[argument])}
        else:
            self._slipped = False
        return self._call(name, **arguments)


def _slightly_wrong(value: Any) -> Any:
    return value + 1 if isinstance(value, int) else f"{value}s"
