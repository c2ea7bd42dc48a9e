"""The hand-labelled cases of tests/audit/cases, and what the audit's rules make of them.

    PYTHONPATH=src:tests python -m support.audited        # the table of docs/history/audit.md

A case is a line: "conversation" (what was said, and calls with their results, "@name" for a record of records.json),
"labels" ([rule, message]: what an operator should be told, all of it), "also" (the same, for messages that carry
another label), "split". The cases with split "held" were labelled before any of them was audited, and the rules were
not changed because of them; by those with split "tune" they were.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from muarl.audit.episodes import audit_episode
from muarl.audit.findings import Finding
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn
from support.environments import rules_of

CASES = Path(__file__).parent.parent / "audit" / "cases"
DOMAINS = ("retail", "airline", "telecom", "hotel")

Mark = tuple[str, int]
"""(rule, message)."""


@dataclass(frozen=True)
class Case:
    """One labelled conversation."""

    id: str
    domain: str
    split: str
    messages: tuple[Message, ...]
    labels: frozenset[Mark]
    note: str = ""

    def findings(self) -> tuple[Finding, ...]:
        """What the audit finds, with nothing but the log; by TAU's policies where it has one."""
        episode = Episode(self.id, self.id, self.domain, [Turn(m) for m in self.messages], StopReason.USER_STOP)
        return audit_episode(episode, rules=rules_of(self.domain, benchmark=True))

    def found(self) -> frozenset[Mark]:
        """The findings as marks."""
        return frozenset((f.rule, f.message) for f in self.findings())


@cache
def _records() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CASES / "records.json").read_text(encoding="utf-8"))
    return found


def _text(result: Any) -> str:
    if isinstance(result, str) and result.startswith("@"):
        result = _records()[result[1:]]
    return result if isinstance(result, str) else json.dumps(result)


def conversation(lines: Sequence[dict[str, Any]]) -> Iterator[Message]:
    """Messages from a case's lines."""
    for number, line in enumerate(lines):
        if "call" in line:
            call = ToolCall(f"call_{number}", line["call"], line["args"])
            text = _text(line["result"])
            yield Message("assistant", None, (call,))
            yield Message("tool", text, tool_call_id=call.id, name=call.name, error=text.startswith("Error"))
        else:
            role = "user" if "user" in line else "assistant"
            yield Message(role, line[role])  # type: ignore[arg-type]


@cache
def cases() -> tuple[Case, ...]:
    """All cases."""
    out = []
    for domain in DOMAINS:
        for line in (CASES / f"{domain}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            marks = frozenset((rule, message) for rule, message in [*row["labels"], *row.get("also", [])])
            messages = tuple(conversation(row["conversation"]))
            out.append(Case(row["id"], domain, row["split"], messages, marks, row.get("note", "")))
    return tuple(out)


@dataclass(frozen=True)
class Score:
    """How a rule did: right findings, false ones, and labels that it missed."""

    right: int
    false: int
    missed: int

    @property
    def precision(self) -> float:
        """The share of its findings that are right; 1 if there are none."""
        return self.right / (self.right + self.false) if self.right + self.false else 1.0

    @property
    def recall(self) -> float:
        """The share of the labels that it found; 1 if there are none."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


def scores(split: str | None = None) -> dict[str, Score]:
    """Every rule's score over the cases of a split, and "all" of them together."""
    right: Counter[str] = Counter()
    false: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for case in cases():
        if split is None or case.split == split:
            found = case.found()
            for marks, count in (
                (found & case.labels, right),
                (found - case.labels, false),
                (case.labels - found, missed),
            ):
                count.update(rule for rule, _ in marks)
    rules = sorted({*right, *false, *missed})
    out = {rule: Score(right[rule], false[rule], missed[rule]) for rule in rules}
    return out | {"all": Score(right.total(), false.total(), missed.total())}


def table() -> str:
    """The table of docs/history/audit.md."""
    tuned, held = scores("tune"), scores("held")
    counted = Counter(c.split for c in cases())
    lines = [
        f"{counted['tune']} cases to tune by, {counted['held']} held out.\n",
        "| rule | labels (tune) | precision | recall | labels (held out) | precision | recall |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    nothing = Score(0, 0, 0)
    for rule in [*sorted({*tuned, *held} - {"all"}), "all"]:
        cells = [rule]
        for score in (tuned.get(rule, nothing), held.get(rule, nothing)):
            labels = score.right + score.missed
            known = labels or score.false
            cells += [str(labels), *((f"{score.precision:.2f}", f"{score.recall:.2f}") if known else ("–", "–"))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
