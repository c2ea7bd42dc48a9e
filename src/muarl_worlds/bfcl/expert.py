"""A scripted agent for generated BFCL tasks: near-perfect, with errors that make imperfect demonstrations.

It reads only what any agent reads: the user's words, the tools it has been given, and what its calls gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muarl.basics.errors import OwnCodeError
from muarl.domains.kit.moves import Move, Request
from muarl.domains.kit.records import fill
from muarl.domains.scripted_expert import ErrorProfile, ScriptedExpert
from muarl.types.chat import Message, ToolSpec
from muarl_worlds.bfcl.observations import observed
from muarl_worlds.bfcl.parsing import lacks, read_reply, read_requests, read_tools
from muarl_worlds.bfcl.recipes import Memory, begun, next_step, take
from muarl_worlds.bfcl.requests import ALL, LOGINS

DONE = "Done."
NO_TOOL = "I have no tool for that."
REFUSAL = "I cannot help with that."
WRONG_IDS = {
    "get_user_id": "user", "cd": "folder", "mv": "source", "rm": "file_name", "cp": "source", "cat": "file_name",
    "close_ticket": "ticket_id", "resolve_ticket": "ticket_id", "cancel_order": "order_id",
}  # fmt: skip
"""Arguments that may be got wrong: the tool's error is then seen and fixed."""


class BfclExpert(ScriptedExpert[Request]):
    """One conversation's worth of expert. ``act`` takes the new messages and gives the next one.

    Which tools it has it learns from ``offer`` and from documents in the user's words; told of none, it takes it that
    it has them all. Of the errors it has ``forget_second``, ``guess`` (a missing value), ``wrong_id``,
    ``try_forbidden`` (calls a tool that it has not been given) and ``needless_transfer``: there is nobody to hand over
    to, so it refuses all along.
    """

    def __init__(self, *, seed: int, error_profile: ErrorProfile = ErrorProfile()) -> None:
        super().__init__("bfcl", seed=seed, error_profile=error_profile)
        self._tools: set[str] | None = None
        self._memory: Memory = {"cwd": []}
        self._serving: Request | None = None
        self._move: Move | None = None
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
        if self._waiting == "value" and frame is not None and (slot := lacks(frame)) is not None:
            value = read_reply(text, slot)
            if value is not None:
                frame.slots[slot.name] = value
                self._waiting = ""
                return
        frames = read_requests(text)
        if len([f for f in frames if f.intent not in LOGINS]) > 1 and self._has("forget_second"):
            del frames[-1]
        if frames and self._waiting:  # the user has moved on
            self._frames, self._serving, self._move = [], None, None
        self._waiting = ""
        self._frames += frames

    def _observe(self, message: Message) -> None:
        if self._move is None:
            return
        if message.error:
            if self._forced:  # the tool was not there after all
                self._forced, self._waiting = False, "tool"
            elif not self._was_wrong:
                self._finish("I could not do that.")
            return
        assert self._serving is not None
        take(self._serving, self._move, observed(self._move.tool, message.content or ""))
        self._move, self._was_wrong, self._forced = None, False, False

    # what goes out

    def _decide(self) -> Message:
        if self._transfer:
            return Message("assistant", REFUSAL)
        while self._frames and not self._waiting:
            if self._serving is None:
                self._begin(self._frames[0])
                continue
            if self._move is None and not self._advance(self._serving):
                continue
            assert self._move is not None
            if self._tools is not None and self._move.tool not in self._tools:
                self._forced = self._has("try_forbidden")
                if not self._forced:
                    self._waiting = "tool"
                    break
            return self._do(self._move.tool, dict(self._move.arguments))
        said, self._said = self._said, []
        if self._waiting == "tool":
            said.append(NO_TOOL)
        elif self._waiting == "value" and (slot := lacks(self._frames[0])) is not None:
            said.append(str(slot.ask))
        return Message("assistant", " ".join(said) or DONE)

    def _begin(self, frame: Request) -> None:
        """Start to serve a request, unless a value must be asked for first."""
        if (slot := lacks(frame)) is not None:
            if not self._has("guess"):
                self._waiting = "value"
                return
            frame.slots[slot.name] = self._rng.choice(slot.guess)
        self._serving = begun(frame.intent, frame.slots, self._memory)

    def _advance(self, serving: Request) -> bool:
        """Find the next call; False if the request has come to its end."""
        try:
            move = next_step(ALL[serving.intent], serving, self._memory)
        except OwnCodeError:  # a tool's answer is not what the plan took it to be
            move = None
        if move is not None and move.kind in ("call", "write"):
            self._move = move
            return True
        said = "I could not do that."
        if move is not None and move.kind in ("answer", "finished"):
            said = " ".join(fill(text, move.known) for text in move.texts)
        self._finish(said)
        return False

    def _finish(self, said: str) -> None:
        if said:
            self._said.append(said)
        del self._frames[:1]
        self._serving, self._move = None, None

    def _do(self, name: str, arguments: dict[str, Any]) -> Message:
        argument = WRONG_IDS.get(name)
        if argument is not None and not self._was_wrong and arguments[argument] != ".." and self._has("wrong_id"):
            self._was_wrong = True
            arguments = {**arguments, argument: _slightly_wrong(arguments[argument])}
        else:
            self._was_wrong = False
        return self._call(name, **arguments)


def _slightly_wrong(value: Any) -> Any:
    return value + 1 if isinstance(value, int) else f"{value}s"
