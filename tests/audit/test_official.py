"""The audit against TAU2's own right answers: what the benchmark calls right, no rule of eligibility may forbid."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from muarl.audit.episodes import audit_episode
from muarl.audit.findings import Finding
from muarl.environments.registry import find
from muarl.records.messages import read_message
from muarl.types.episode import Episode, StopReason, Turn
from muarl_worlds.tau import tau2_benchmark as tau2

pytestmark = pytest.mark.data

TOLD = {"ineligible-write", "cross-user-read", "cross-user-write", "cross-user-lookup", "second-user"}
"""Rules that need no word of the user's."""


def golds(folder: Path) -> Iterator[tuple[str, tuple[Finding, ...], Counter[str]]]:
    domains = {name: tau2.domain(name) for name in ("retail", "airline", "telecom")}
    rules = {name: find(f"tau2-{name}").audit_rules(domain) for name, domain in domains.items()}
    for line in (folder / "oracle" / "tau2_gold_trajectories.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["domain"] in domains:
            domain = domains[row["domain"]]
            turns = [Turn(read_message(m, "gold")) for m in row["messages"]]
            episode = Episode(row["id"], row["id"], row["domain"], turns, StopReason.USER_STOP)
            task = tau2.task(row["domain"], row["id"])
            kinds = Counter(domain.kind_of(c.name) for t in turns for c in t.message.tool_calls)
            yield row["domain"], audit_episode(episode, task, domain=domain, rules=rules[row["domain"]]), kinds


def test_gold_actions_are_eligible_and_cross_no_boundary(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUARL_DATA", str(shared_data))
    seen: Counter[str] = Counter()
    for name, findings, kinds in golds(shared_data):
        seen[name] += kinds["write"]
        assert not TOLD & {f.rule for f in findings}, findings
    assert min(seen[name] for name in ("retail", "airline", "telecom")) >= 40, "there is something to find fault with"
