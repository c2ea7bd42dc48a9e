"""What an audit finds: one frozen record a finding, and the JSON lines that hold an evaluation's findings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from muarl.basics.errors import DataError
from muarl.basics.files import in_utf8, whole_file
from muarl.basics.untrusted import LINE_BYTES
from muarl.records.rows import LineRules, json_lines

Layer = Literal["outcome", "policy", "communication", "safety", "recovery"]
Severity = Literal["note", "violation", "catastrophic"]

LAYERS: tuple[Layer, ...] = get_args(Layer)
"""The five layers, in the order in which they are shown."""

QUESTIONS: Mapping[str, str] = {
    "outcome": "was the task done?",
    "policy": "was the policy followed?",
    "communication": "was everything said?",
    "safety": "were safety boundaries respected?",
    "recovery": "did it recover well?",
}
"""What each layer asks."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the least to the worst. A note is worth a look and no fault; a violation is a fault; a catastrophic one is what
an operator must never see (see ``rules.CATASTROPHIC``)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that an audit says of an episode."""

    layer: Layer
    rule: str
    """Its name, such as "write-without-consent"."""
    severity: Severity
    message: int
    """Index in ``Episode.messages`` of the message it points at."""
    text: str
    """One sentence for an operator."""
    call: str | None = None
    """The tool's name where it is about a call."""
    by: Literal["rule", "judge"] = "rule"
    """Who found it."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict that ``from_json`` restores exactly."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        """The inverse of ``to_json``; other keys are passed over. ValueError names a field that is missing or wrong."""
        choices = {"layer": LAYERS, "severity": SEVERITIES, "by": ("rule", "judge")}
        for name, allowed in choices.items():
            if data.get(name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {data.get(name)!r}")
        for name in ("rule", "text"):
            if not isinstance(data.get(name), str):
                raise ValueError(f"{name} must be a string, not {data.get(name)!r}")
        message, call = data.get("message"), data.get("call")
        if not isinstance(message, int) or isinstance(message, bool) or message < 0:
            raise ValueError(f"message must be the index of a message, not {message!r}")
        if call is not None and not isinstance(call, str):
            raise ValueError(f"call must be a tool's name or null, not {call!r}")
        return cls(data["layer"], data["rule"], data["severity"], message, data["text"], call, data["by"])


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The worst severity among findings, None if there are none."""
    severities = {f.severity for f in findings}
    return next((s for s in reversed(SEVERITIES) if s in severities), None)


def write_findings(path: Path, episodes: Iterable[tuple[Mapping[str, Any], Iterable[Finding]]]) -> int:
    """Write findings as JSON lines, whole or not at all: one line a finding; returns how many.

    ``episodes``: for each episode what identifies it (``episode`` and ``task_id``, and what else is known) and its
    findings. A line holds these keys first, then those of ``Finding.to_json``.
    """
    count = 0
    with whole_file(path) as out:
        for where, findings in episodes:
            for finding in findings:
                out.write(in_utf8(json.dumps({**where, **finding.to_json()}, ensure_ascii=False)) + "\n")
                count += 1
    return count


def read_findings(path: Path) -> Iterator[tuple[dict[str, Any], Finding]]:
    """The findings of a file, each with what identifies its episode. DataError names file, line and field."""
    for row in json_lines(path, LineRules(most=LINE_BYTES, errors="surrogatepass")):
        try:
            finding = Finding.from_json(row.value)
        except ValueError as problem:
            raise DataError(f"{row.place}: {problem}") from None
        yield {k: v for k, v in row.value.items() if k not in Finding.__slots__}, finding
