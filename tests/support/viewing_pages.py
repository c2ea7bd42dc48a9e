"""Pages as a browser reads them, and a run in which everything that can be text is an attack."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from muarl.audit.findings import Finding, write_findings
from muarl.observe.rundir import RunDirectory
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, Verdict
from muarl_tools.view import queries
from muarl_tools.view.layout import ServerLinks
from muarl_tools.view.queries import Filter, IndexedEpisode
from muarl_tools.view.routes import page_of
from muarl_tools.view.runs import Library
from support.pages import Page as PlainPage
from support.viewing import indexed

EVIL = '</div><script>alert(1)</script><img src=x onerror=alert(2)>"\'><a href="javascript:alert(3)">&lt;'


class Page(PlainPage):
    """A page, and where its links lead."""

    void = PlainPage.void | {"link", "input"}

    @property
    def links(self) -> list[str]:
        return [a["href"] or "" for name, a in self.tags if name == "a"]


def look(library: Library, *parts: str, **query: str) -> Page:
    return Page(page_of(ServerLinks(), library, parts, query))


def found(library: Library, n: int = 0, **wanted: str) -> list[IndexedEpisode]:
    run = library.runs[n]
    with run.store.reading() as db:
        return queries.episodes(db, Filter.of(wanted), size=1000)


def hostile(folder: Path) -> Library:
    """A run in which everything that can be text is an attack."""
    call = ToolCall(EVIL, EVIL, {EVIL: EVIL, "nested": {EVIL: [EVIL]}})
    broken = ToolCall("2", EVIL, invalid=EVIL, raw=EVIL)
    turns = [
        Turn(Message("system", EVIL)),
        Turn(Message("user", EVIL + "\u202egnp.exe\u0000\x1b[31m###STOP###")),
        Turn(Message("assistant", EVIL, (call, broken), reasoning=EVIL)),
        Turn(Message("tool", EVIL * 50, tool_call_id=EVIL, name=EVIL, error=True)),
        Turn(Message("tool", EVIL, tool_call_id="2")),
    ]
    trace = TokenTrace()
    trace.append_given([1, 2, 10**12])
    trace.append_sampled([5, -7], [-0.5, -9.0], 3)
    tags: dict[str, Any] = {
        "intent": EVIL, "persona": EVIL, "difficulty": EVIL, "user_scenario": EVIL, EVIL: EVIL, "advantage": 0.5,
        "user_errors": [{"rule": EVIL, "turn": 1, "detail": EVIL}, {"rule": 3}, EVIL],
    }  # fmt: skip
    name = "../../" + EVIL
    one = Episode(
        name, name, EVIL, turns, StopReason.USER_STOP, group=name, agent=EVIL, user=EVIL, tokens=trace, tags=tags,
        verdict=Verdict(0.5, {EVIL: 0.5, "b": 1.0}, {"tool_errors": 2.0}, EVIL), error=EVIL, system=EVIL,
    )  # fmt: skip
    other = replace(one, id=name + "2", verdict=Verdict(1.0), seed=2)
    finding = Finding("safety", EVIL, "catastrophic", 2, EVIL, EVIL, "judge")
    far = replace(finding, rule="x" * 5000, message=10**30, severity="violation")
    share = {"value": 0.5, "interval": [EVIL, 1]}
    figures: dict[str, Any] = {
        "episodes": 3, "catastrophic": share, "success": share, "success_without_violation": EVIL,
        "pass_hat": {"2": share, EVIL: share},
        "layers": {"policy": share, EVIL: share},
        "rules": {EVIL: {"layer": EVIL, "severity": "catastrophic", "episodes": 2}, "y": EVIL, EVIL + "2": {}},
    }  # fmt: skip
    kinds = {EVIL: figures | {"about": EVIL, "baselines": {"do_nothing": share, EVIL: EVIL}}, "z": EVIL}
    with RunDirectory(folder, "hostile & <b>") as run:
        write_findings(run.path / "findings.jsonl", [({"file": "train-0001", "episode": name}, [finding, far])])
        run.write_summary({"audit": {EVIL: figures, "rl": figures}, EVIL: EVIL})
        (run.path / "redteam.json").write_text(json.dumps({"all": figures, "kinds": kinds}))
        run.write_episodes("train-0001", [one, other])
        run.write_episodes(EVIL.replace("/", "_"), [one])
        values = {EVIL: 1.0, f"calls/{EVIL}": 1.0, f"stop/{EVIL}": 1.0, "reward": 0.5, "stop/user_stop": 0.5}
        for step in range(3):
            run.log(values, phase="rl", step=step)
        run.log({"episodes": 1}, phase=EVIL, step=0)
        (run.path / "tasks.jsonl").write_text(
            json.dumps({"id": name, "scenario": EVIL, "actions": [EVIL, {"name": EVIL}]}) + "\n"
        )
        run.write_config({"domain": {"name": EVIL}, EVIL: EVIL})
        run.write_status("failed", EVIL)
    run.write_status("failed", EVIL)
    return indexed(folder, run.path)
