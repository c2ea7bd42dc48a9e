"""Replies are looked at before they go out (``muarl serve --guard``): calls that the audit's rules would find are held
back, and the model is asked again with the reason in place of a result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from muarl.audit.coverage import made, missing
from muarl.audit.findings import Finding
from muarl.audit.guard import CallGuard, reasons
from muarl.basics.errors import ConfigError
from muarl.environments.registry import find
from muarl.inference.base import FinishReason
from muarl.types.chat import Message, ToolCall
from muarl_tools.serve_model.replies import Piece

log = logging.getLogger(__name__)

GuardMode = Literal["block", "report"]
LAYERS = ("policy", "safety")
"""Of the audit's layers, those that are about calls."""
TEXT = "I am not able to do that as it stands. What would you like me to do?"
"""What is said in place of calls that a model insists on."""


@dataclass(frozen=True, slots=True)
class ServedGuard:
    """``name``: of the domain whose rules hold. ``mode``: ``block`` holds calls back, ``report`` only tells of them.
    ``tries``: how often the model is asked again for one reply. ``text``: what is said where it insists."""

    name: str
    guard: CallGuard
    mode: GuardMode = "block"
    tries: int = 2
    text: str = TEXT

    async def findings(self, messages: Sequence[Message], reply: Message) -> tuple[Finding, ...]:
        """What the rules find in the reply's calls; in a thread, since long conversations take long to read."""
        if not reply.tool_calls:
            return ()
        return await asyncio.to_thread(self.guard.findings, messages, reply)

    @property
    def about(self) -> str:
        """What it looks for, in one line."""
        looks, lacks = (", ".join(c.name for c in of(self.guard.rules) if c.layer in LAYERS) for of in (made, missing))
        rest = f"; nothing is declared of {lacks}" if lacks else ""
        return f"Guard of {self.name} ({self.mode}): {looks}{rest}."


def make_guard(name: str, mode: GuardMode = "block", tries: int = 2, text: str | None = None) -> ServedGuard:
    """The guard by an environment's audit rules. ConfigError where it has declared none."""
    environment = find(name)
    domain = None if environment.on_server else environment.make_domain()
    rules = environment.audit_rules(domain)
    if not any(check.layer in LAYERS for check in made(rules)):
        raise ConfigError(f"--guard {name}: no audit rules are declared for it: see docs/audit.md")
    return ServedGuard(name, CallGuard.of(rules, domain), mode, tries, text or TEXT)


@dataclass(slots=True)
class GuardReport:
    """What a guard has found in a choice. ``held``: how many replies were held back for it. ``prompt``, ``completion``:
    tokens of the replies that were."""

    mode: GuardMode
    findings: list[Finding] = field(default_factory=list)
    held: int = 0
    prompt: int = 0
    completion: int = 0

    def note(self, findings: Sequence[Finding]) -> None:
        """More was found."""
        self.findings += findings
        did = "held back" if self.mode == "block" else "found"
        for finding in findings:
            log.warning("guard: %s in a call of %s: %s", did, finding.call, finding.rule)

    def to_json(self) -> dict[str, Any]:
        """The field ``guard`` of a choice."""
        shown = [
            {"rule": f.rule, "layer": f.layer, "severity": f.severity, "call": f.call, "text": f.text}
            for f in self.findings
        ]
        return {"mode": self.mode, "held_back": self.held, "findings": shown}


def held_back(reply: Message, findings: Sequence[Finding]) -> list[Message]:
    """What the model is shown of a reply that was held back: the reply, and the reason as each call's result."""
    why = reasons(findings)
    answers = [Message("tool", why, tool_call_id=c.id, name=c.name, error=True) for c in reply.tool_calls]
    return [reply, *answers]


@dataclass(slots=True)
class PlainReply:
    """A reply of words that nobody has sampled, in place of a reader."""

    content: str
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    with_unread: Message | None = None
    finish_reason: str = "stop"
    reasoned: int = 0
    ends_early: bool = False
    done: bool = True
    cut: bool = True

    def feed(self, ids: Sequence[int]) -> list[Piece]:
        """Nothing belongs to it."""
        return []

    def end(self, finish: FinishReason) -> list[Piece]:
        """It is over."""
        return []
