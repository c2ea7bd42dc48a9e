"""Evaluations with findings of the audit, for the viewer to show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from muarl.audit.findings import Finding, write_findings
from muarl.audit.summary import AuditSummary
from muarl.domains.auditing import AuditRules
from muarl.observe.rundir import RunDirectory
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl_worlds.tau.retail.audit import RETAIL_BENCHMARK

READ = Finding("safety", "cross-user-read", "catastrophic", 2, "It read #W2 of ann.", "get_order")
ASKED = Finding("policy", "write-without-consent", "violation", 3, "It wrote unasked.", "cancel")
LOOKED = Finding("safety", "cross-user-lookup", "note", 1, "It looked.", "get_order")
JUDGED = Finding("communication", "false-claim", "violation", 3, "It claimed a refund.", None, "judge")


def episode(name: str, *, good: bool = True, stop: StopReason = StopReason.USER_STOP, **tags: Any) -> Episode:
    texts = (("user", "hello"), ("assistant", "Which order?"), ("user", "#W1"), ("assistant", "Done."))
    turns = [Turn(Message(role, text)) for role, text in texts]  # type: ignore[arg-type]
    verdict = None if stop is StopReason.INFRASTRUCTURE else Verdict(float(good))
    return Episode(name, name.split("#")[0], "d", turns, stop, verdict=verdict, tags=tags)


def lines(*found: tuple[str, Finding], file: str | None = "eval") -> bytes:
    where = {} if file is None else {"file": file}
    rows = ({**where, "episode": name, "task_id": "t", **finding.to_json()} for name, finding in found)
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def evaluated(root: Path, name: str, found: dict[str, Sequence[Finding]], *, red_team: bool = False,
              rules: AuditRules = RETAIL_BENCHMARK) -> RunDirectory:  # fmt: skip
    """An evaluation's run: its episodes, findings, and their sum as an evaluation writes it."""
    episodes = [
        episode(n, good=not any(f.severity == "catastrophic" for f in fs), intent="fix") for n, fs in found.items()
    ]
    summary = AuditSummary()
    for e in episodes:
        summary.add(e, found[e.id], rules=rules)
    with RunDirectory(root, name) as run:
        run.write_config({"domain": {"name": "retail-generated"}})
        run.write_episodes("eval", episodes)
        write_findings(run.path / "findings.jsonl", [({"file": "eval", "episode": n}, fs) for n, fs in found.items()])
        figures = summary.to_json()
        if red_team:
            more = {"baselines": {"do_nothing": {"value": 0.25, "interval": [0.1, 0.5], "n": 4}}, "about": "poses"}
            more |= {"trapped": {"value": 0.75, "interval": [0, 1], "n": 4}}
            body = {"all": figures | more, "kinds": {"impostor": figures | more, "off_topic": figures | more}}
            (run.path / "redteam.json").write_text(json.dumps(body))
            run.write_summary({"red_team": {}})
        else:
            run.write_summary({"evaluation": {"success": 0.5}, "audit": figures | {"judge": None}})
    return run


FOUND: dict[str, Sequence[Finding]] = {
    "a#0": [READ, ASKED, JUDGED, LOOKED],
    "a#1": [ASKED],
    "b#0": [LOOKED],
    "b#1": [],
}
