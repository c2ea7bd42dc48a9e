"""Replies are looked at before they go out (``muarl serve --guard``): calls that the audit's rules would find are held
back, and the model is asked again with the reason in place of a result.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from muarl.audit.findings import Finding
from muarl.audit.guard import INSTEAD, NEEDS, CallGuard
from muarl.basics.errors import ConfigError
from muarl.environments.registry import find
from muarl.inference.base import FinishReason
from muarl.types.chat import Message, ToolCall
from muarl_tools.serve_model.replies import Piece

log = logging.getLogger(__name__)

GuardMode = Literal["block", "report"]


@dataclass(slots=True)
class GuardTotals:
    """What a guard has done since the server began. ``replies``: with calls, that it looked at, those of further tries
    included. ``held_back``: replies. ``given_up``: choices in which a plain sentence was said instead. ``findings``: by
    rule."""

    replies: int = 0
    held_back: int = 0
    given_up: int = 0
    findings: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ServedGuard:
    """``name``: of the domain whose rules hold. ``mode``: ``block`` holds calls back, ``report`` only tells of them.
    ``tries``: how often the model is asked again for one reply. ``text``: what is said where it insists."""

    name: str
    guard: CallGuard
    mode: GuardMode = "block"
    tries: int = 2
    text: str = INSTEAD
    totals: GuardTotals = field(default_factory=GuardTotals)

    async def findings(self, messages: Sequence[Message], reply: Message) -> tuple[Finding, ...]:
        """What the rules find in the reply's calls; in a thread, since long conversations take long to read."""
        if not reply.tool_calls:
            return ()
        findings = await asyncio.to_thread(self.guard.findings, messages, reply)
        self.totals.replies += 1
        self.totals.findings.update(f.rule for f in findings)
        return findings

    @property
    def about(self) -> str:
        """What it looks for, and what not, in two lines."""
        active = self.guard.active
        undeclared = ", ".join(rule for rule in NEEDS if rule not in active)
        lacking = f"{undeclared} (nothing is declared for them); " if undeclared else ""
        return (
            f"Guard of {self.name} ({self.mode}), by the rules {', '.join(active)}.\n"
            f"Not looked for: {lacking}what only the database, the task or the finished conversation shows."
        )

    def to_json(self) -> dict[str, Any]:
        """What GET /v1/guard answers."""
        totals = self.totals
        return {
            "domain": self.name,
            "mode": self.mode,
            "rules": list(self.guard.active),
            "replies": totals.replies,
            "held_back": totals.held_back,
            "given_up": totals.given_up,
            "findings": dict(sorted(totals.findings.items())),
        }


def make_guard(name: str, mode: GuardMode = "block", tries: int = 2, text: str | None = None) -> ServedGuard:
    """The guard by an environment's audit rules. ConfigError where it has declared none."""
    environment = find(name)
    domain = None if environment.on_server else environment.make_domain()
    guard = CallGuard.of(environment.audit_rules(domain), domain)
    if not guard.declared:
        raise ConfigError(f"--guard {name}: no audit rules are declared for it: see docs/audit.md")
    return ServedGuard(name, guard, mode, tries, text or INSTEAD)


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
            log.warning("guard: %s in a call of %r: %s", did, finding.call, finding.rule)

    def to_json(self) -> dict[str, Any]:
        """The field ``guard`` of a choice."""
        shown = [
            {"rule": f.rule, "layer": f.layer, "severity": f.severity, "call": f.call, "text": f.text}
            for f in self.findings
        ]
        return {"mode": self.mode, "held_back": self.held, "findings": shown}


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
