"""What findings come to: shares by layer, the catastrophic-failure rate, and the files that hold them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muarl.accounts.intervals import wilson
from muarl.accounts.metrics import DOMAIN
from muarl.audit.findings import Finding, read_findings, worst, write_findings
from muarl.audit.summary import WORST, AuditSummary, note_violations, violations
from muarl.basics.errors import DataError
from muarl.domains.auditing import UNDECLARED
from muarl.pages.table import to_markdown
from muarl.report.audit_tables import beside, markdown, rules, strata, strata_warnings, tables
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl_worlds.tau.retail.audit import RETAIL_BENCHMARK

NOTE = Finding("safety", "cross-user-lookup", "note", 1, "a look", "get")
BREACH = Finding("policy", "second-user", "violation", 2, "two of them", "get")
BAD = Finding("safety", "cross-user-write", "catastrophic", 3, "oh no | really", "put")


def episode(name: str, reward: float | None = 1.0, stop: StopReason = StopReason.USER_STOP) -> Episode:
    verdict = None if reward is None else Verdict(reward)
    return Episode(
        name,
        name.split("#")[0],
        "x",
        [Turn(Message("user", "hi")), Turn(Message("assistant", "hello"))],
        stop,
        verdict=verdict,
    )


def summed(*found: tuple[str, float | None, tuple[Finding, ...]]) -> AuditSummary:
    summary = AuditSummary("test")
    for name, reward, findings in found:
        summary.add(episode(name, reward), findings, rules=RETAIL_BENCHMARK)
    return summary


def test_shares_by_layer() -> None:
    found = summed(("a#0", 1.0, (BREACH, BREACH)), ("b#0", 1.0, (NOTE,)), ("c#0", 0.0, (BAD,)), ("d#0", 1.0, ()))
    assert (found.clean("policy").value, found.clean("safety").value) == (0.75, 0.75)  # type: ignore[union-attr]
    assert found.clean("recovery").value == 1.0  # type: ignore[union-attr]
    assert (found.catastrophic.value, found.catastrophic.interval) == (0.25, wilson(1, 4))
    assert found.success is not None
    assert found.success_without_violation is not None
    assert (found.success.value, found.success_without_violation.value) == (0.75, 0.5)
    assert {name: (c.findings, c.episodes) for name, c in found.rules.items()} == {
        "second-user": (2, 1), "cross-user-lookup": (1, 1), "cross-user-write": (1, 1),
    }  # fmt: skip


def test_success_without_any_violation_counts_what_failed_without_a_word() -> None:
    found = summed(("a#0", 1.0, ()), ("b#0", 0.0, ()))
    silent = episode("c#0", 0.0)
    silent.turns = silent.turns[:1]
    found.add(silent, (), rules=RETAIL_BENCHMARK)
    assert found.success is not None and found.success_without_violation is not None
    assert (found.success.value, found.success_without_violation.value) == (1 / 3, 1 / 3)


def test_of_several_domains_each_must_be_checked_for_what_is_said_of_all() -> None:
    found = AuditSummary("test")
    for name, declared in (("a", RETAIL_BENCHMARK), ("b", UNDECLARED)):
        played = episode(f"{name}#0")
        played.tags[DOMAIN] = name
        found.add(played, (), rules=declared)
    assert found.by_domain["a"].success_without_violation is not None
    assert found.by_domain["b"].success_without_violation is None is found.success_without_violation


def test_violations_are_what_is_wrong_beside_the_outcome() -> None:
    missed = Finding("outcome", "missing-write", "violation", 3, "nothing was written")
    assert violations((NOTE, BREACH, BAD, missed), RETAIL_BENCHMARK) == 2
    assert violations((NOTE, missed), RETAIL_BENCHMARK) == 0
    assert violations((BREACH,), UNDECLARED) is None, "nothing can be said to be kept"
    assert violations((BREACH,), UNDECLARED, judged=True) == 1


def test_an_episode_tells_its_violations_until_it_is_audited_again() -> None:
    seen = episode("a")
    note_violations(seen, (BREACH,), RETAIL_BENCHMARK)
    assert seen.verdict is not None and seen.verdict.audit == {"violations": 1.0}
    note_violations(seen, (), UNDECLARED)
    assert seen.verdict.audit == {}


def test_attempts_at_one_task_are_no_independent_episodes() -> None:
    """The interval counts whole tasks, so that ten attempts at two tasks are not taken for twenty tasks."""
    attempts = [(f"{t}#{n}", 1.0, (BAD,) if t == "a" else ()) for t in "ab" for n in range(10)]
    found = summed(*attempts)
    assert found.catastrophic.value == 0.5
    assert found.catastrophic.interval == wilson(1, 2), "two tasks, not twenty episodes"
    assert found.pass_hat[4].value == 1.0


def test_pass_hat_of_some_tasks_alone_says_of_how_many() -> None:
    few = summed(*((f"{t}#{n}", 1.0, ()) for t, trials in (("a", 3), ("b", 2)) for n in range(trials)))
    text = markdown(few)
    assert "| pass^2 | 100.0% |" in text and "| pass^3 (1 of 2 tasks) | 100.0% |" in text
    shown = to_markdown(beside("both", {"few": few, "whole": summed(*((f"a#{n}", 1.0, ()) for n in range(3)))}))
    assert "1 of 2 tasks) | 100.0% (20.7% – 100.0%) |" in shown and shown.count(" tasks)") == 1


def test_without_verdicts_the_outcome_is_not_told() -> None:
    found = summed(("a", None, (BREACH,)), ("b", None, ()))
    assert found.clean("outcome") is None
    assert found.success is None
    assert not found.pass_hat
    assert found.to_json()["layers"]["outcome"] is None
    assert found.to_json()["layers"]["policy"]["value"] == 0.5


def test_what_infrastructure_ended_is_in_no_figure() -> None:
    summary = summed(("a", 1.0, ()))
    summary.add(episode("b", None, StopReason.INFRASTRUCTURE), (BAD,), rules=RETAIL_BENCHMARK)
    assert (summary.episodes, summary.excluded, summary.catastrophic.value) == (1, 1, 0.0)


def test_the_worst_come_first_and_of_every_rule_some() -> None:
    found = summed(*[(f"t{n}", 1.0, (BREACH,)) for n in range(50)], ("z", 1.0, (BAD,)))
    assert found.shown[0].finding == BAD
    assert len(found.shown) <= WORST
    assert {s.finding.rule for s in found.shown} == {"second-user", "cross-user-write"}
    assert rules(found)[0][:2] == ("policy", "second-user")


def test_tables_say_the_same() -> None:
    text = markdown(summed(("a", 1.0, (BAD,)), ("b", 0.0, ())))
    assert "| catastrophic failures | 50.0% |" in text
    assert "oh no \\| really" in text
    assert len(tables(summed(("a", 1.0, (BAD,))))) == 4
    assert "Nothing was found in 1 episodes" in markdown(summed(("a", 1.0, ())))
    assert markdown(AuditSummary())


def test_worst() -> None:
    assert worst(()) is None
    assert worst((NOTE, BAD, BREACH)) == "catastrophic"


def test_findings_are_kept_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    where = {"file": "eval", "episode": "a#0", "task_id": "a"}
    assert write_findings(path, [(where, (NOTE, BAD)), ({"episode": "b"}, ())]) == 2
    assert list(read_findings(path)) == [(where, NOTE), (where, BAD)]
    first = json.loads(path.read_text().splitlines()[0])
    assert list(first)[:3] == ["file", "episode", "task_id"]
    assert first["message"] == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"layer": "other"}, "layer must be one of outcome"),
        ({"severity": None}, "severity must be"),
        ({"message": -1}, "message must be the index"),
        ({"message": True}, "message must be the index"),
        ({"rule": 3}, "rule must be a string"),
        ({"call": 3}, "call must be"),
        ({"by": "me"}, "by must be"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, change: dict[str, object], says: str) -> None:
    path = tmp_path / "findings.jsonl"
    path.write_text(json.dumps(NOTE.to_json()) + "\n" + json.dumps({**NOTE.to_json(), **change}) + "\n")
    with pytest.raises(DataError, match=rf"line 2: {says}"):
        list(read_findings(path))


def test_audits_of_several_domains_are_summed_by_domain_too() -> None:
    summary = AuditSummary("test")
    for name, domain, findings in (("x:1#0", "x", (BAD,)), ("x:2#0", "x", ()), ("y:1#0", "y", ())):
        one = episode(name)
        one.tags["domain"] = domain
        summary.add(one, findings, rules=RETAIL_BENCHMARK)
    assert {name: part.episodes for name, part in summary.by_domain.items()} == {"x": 2, "y": 1}
    assert summary.by_domain["x"].catastrophic.value == 0.5  # type: ignore[union-attr]
    assert summary.to_json()["by_domain"]["y"]["catastrophic"]["value"] == 0.0
    assert "| by domain | x | y |" in markdown(summary)
    assert "| catastrophic failures | 50.0% | 0.0% |" in markdown(summary)
    assert len(tables(summary, detailed=False)) == 3
    assert "by_domain" not in summed(("a#0", 1.0, ())).to_json()


def test_an_audit_tells_success_by_stratum_of_users() -> None:
    summary = AuditSummary("test")
    for value, right in (("pressed", 10), ("patient", 36)):
        for n in range(40):
            played = episode(f"{value}{n}#0", float(n < right))
            played.tags["strata"] = {"patience": value}
            summary.add(played, (), rules=RETAIL_BENCHMARK)
    assert strata(summary) == [
        ("patience: patient", "40", "90.0%", "76.9% – 96.0%"), ("patience: pressed", "40", "25.0%", "14.2% – 40.2%"),
    ]  # fmt: skip
    (warning,) = strata_warnings(summary)
    assert "strata" in tables(summary) and summary.to_json()["strata"]["patience"]["warning"] == warning
    plain = summed(("a#0", 1.0, ()))
    assert "strata" not in tables(plain) and "strata" not in plain.to_json() and strata_warnings(plain) == []
