"""``muarl audit`` on runs, other trainers' logs and the benchmarks' files; and the audit within ``muarl eval``."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from muarl.audit.findings import read_findings
from muarl.cli.main import app
from muarl.types.chat import to_openai
from support.audited import cases
from support.fake_openai import Answer, FakeOpenAI, text


def muarl(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})


def logged(names: tuple[str, ...], path: Path, **more: Any) -> Path:
    """Cases as another trainer's or a live agent's log has them: OpenAI messages, nothing else."""
    chosen = [c for c in cases() if c.id in names]
    rows = [{"id": c.id, **more, "messages": [to_openai(m) for m in c.messages], "tools": []} for c in chosen]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation of a scripted expert on generated tasks."""
    runs = tmp_path_factory.mktemp("runs")
    found = muarl("eval", "retail-generated", "--agent", "expert", "--tasks", "6", "--trials", "2", f"runs_dir={runs}")
    assert found.exit_code == 0, found.output
    return runs / "eval-retail-generated"


class TestEvaluations:
    def test_every_evaluation_is_audited(self, run: Path) -> None:
        summary = json.loads((run / "summary.json").read_text())["audit"]
        assert summary["catastrophic"]["value"] == 0.0
        assert summary["layers"]["policy"]["value"] == 1.0
        assert summary["episodes"] == 12
        assert set(summary["pass_hat"]) == {"1", "2"}
        report = (run / "report.md").read_text()
        assert "## Audit" in report
        assert "| catastrophic failures | 0.0%" in report
        assert (run / "findings.jsonl").read_text() == ""

    def test_idle_agents_findings_are_beside_the_episodes(self, tmp_path: Path) -> None:
        found = muarl("eval", "retail-generated", "--agent", "idle", "--tasks", "4", f"runs_dir={tmp_path}")
        assert found.exit_code == 0, found.output
        assert "catastrophic failures" in found.output
        folder = tmp_path / "eval-retail-generated"
        rows = list(read_findings(folder / "findings.jsonl"))
        episodes = {json.loads(line)["id"] for line in (folder / "episodes" / "eval.jsonl").read_text().splitlines()}
        assert rows
        assert {where["episode"] for where, _ in rows if where["file"] == "eval"} <= episodes
        assert {where["file"] for where, _ in rows} == {"eval", "eval-typical", "eval-hard"}
        assert all(where["task_id"] for where, _ in rows)


class TestRuns:
    def test_a_run(self, run: Path, tmp_path: Path) -> None:
        found = muarl("audit", run, "--out", tmp_path / "out", "--fail-on", "violation")
        assert found.exit_code == 0, found.output
        assert "36 conversations. Rules: retail-generated (36)." in found.output
        assert "Not checked (no rules declared): policy (eligibility)." in found.output
        summary = json.loads((tmp_path / "out" / "summary.json").read_text())
        assert (summary["episodes"], summary["success"]["value"]) == (36, 1.0)
        assert [part["episodes"] for part in summary["files"].values()] == [12, 12, 12]  # easy, typical, hard users
        assert not any(run.glob("out*"))

    def test_one_file_of_it(self, run: Path) -> None:
        assert muarl("audit", run, "--episodes", "eval").exit_code == 0
        wrong = muarl("audit", run, "--episodes", "train-1")
        assert wrong.exit_code == 2
        assert "has no 'train-1'; it has eval" in wrong.output
        assert "12 conversations" in muarl("audit", run / "episodes" / "eval.jsonl").output

    def test_evaluations_stand_in_columns_and_training_is_passed_over(self, run: Path, tmp_path: Path) -> None:
        whole = (run / "episodes" / "eval.jsonl").read_text()
        for name in ("config.yaml", "tasks.jsonl"):
            (tmp_path / name).write_text((run / name).read_text())
        (tmp_path / "episodes").mkdir()
        for stem in ("eval-before", "eval-after", "train-0000"):
            (tmp_path / "episodes" / f"{stem}.jsonl").write_text(whole)
        said = muarl("audit", tmp_path).output
        head = next(line for line in said.splitlines() if "eval-before" in line)
        assert head.index("eval-before") < head.index("eval-after") and "train-0000" not in head
        assert next(line for line in said.splitlines() if "success without any violation" in line).count("100.0%") == 2
        assert "24 conversations" in said and "--episodes NAME (train-0000)" in said
        assert "12 conversations" in muarl("audit", tmp_path, "--episodes", "train-0000").output

    def test_evaluations_with_harder_users_stand_beside_the_others(self, run: Path, tmp_path: Path) -> None:
        whole = (run / "episodes" / "eval.jsonl").read_text()
        for name in ("config.yaml", "tasks.jsonl"):
            (tmp_path / name).write_text((run / name).read_text())
        (tmp_path / "episodes").mkdir()
        stems = ("eval-before", "eval-after", "eval-typical", "eval-hard")
        for stem in stems:
            (tmp_path / "episodes" / f"{stem}.jsonl").write_text(whole)
        said = muarl("audit", tmp_path).output
        head = next(line for line in said.splitlines() if "eval-before" in line)
        assert head.split() == ["figure", *stems] and max(map(len, said.splitlines())) <= 80
        assert "48 conversations" in said and "--episodes NAME" not in said

    def test_a_run_that_is_still_writing(self, run: Path, tmp_path: Path) -> None:
        episodes = tmp_path / "episodes"
        episodes.mkdir()
        whole = (run / "episodes" / "eval.jsonl").read_text()
        (episodes / "eval.jsonl").write_text(whole[: len(whole) // 2])
        assert "conversations" in muarl("audit", tmp_path).output


class TestLogs:
    def test_other_peoples_logs(self, tmp_path: Path) -> None:
        path = logged(("r-other-order-cancelled", "r-cancel-clean", "r-question-back"), tmp_path / "live.jsonl")
        found = muarl("audit", path, "--out", tmp_path / "out", "--fail-on", "catastrophic")
        assert found.exit_code == 3, found.output
        marks = {(where["episode"], f.rule, f.message) for where, f in read_findings(tmp_path / "out/findings.jsonl")}
        wanted = {
            (c.id, *label) for c in cases() for label in c.labels if c.id in found.output or c.id.startswith("r-")
        }
        assert marks <= wanted
        assert ("r-question-back", "write-without-consent", 7) in marks
        assert "Rules: retail (3)." in found.output, "known by its tools"

    @pytest.mark.parametrize(("level", "code"), [("never", 0), ("catastrophic", 0), ("violation", 3)])
    def test_exit_codes(self, tmp_path: Path, level: str, code: int) -> None:
        path = logged(("r-cancel-unasked-consent",), tmp_path / "live.jsonl")
        assert muarl("audit", path, "--fail-on", level).exit_code == code

    def test_as_live_logs_are(self, tmp_path: Path) -> None:
        """Texts in parts, a developer's message, broken arguments, errors that nobody marks, no result."""
        messages = [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Where is #1?"}]},
            {"role": "assistant", "content": "Let me see.",
             "tool_calls": [{"id": "a", "type": "function", "function": {"name": "get_order", "arguments": "{oh"}}]},
            {"role": "tool", "tool_call_id": "a", "content": '{"error": "bad arguments"}'},
            {"role": "assistant", "content": None,
             "tool_calls": [{"id": "b", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}]},
        ]  # fmt: skip
        path = tmp_path / "live.jsonl"
        path.write_text(json.dumps({"messages": messages}) + "\n\n")
        found = muarl("audit", path)
        assert found.exit_code == 0, found.output
        assert "1 conversations. Rules: none (1)." in found.output
        assert "100" not in found.output.split("recovery")[0], "nothing was checked"

    def test_a_domain_of_ones_own(self, tmp_path: Path) -> None:
        rules = tmp_path / "rules.yaml"
        rules.write_text(
            "auth_tools: [login]\nperson: member\nwrites: [buy]\nreads: [login]\n"
            "obligations:\n  - {name: price, tools: [buy], text: What it costs., say: ['\\$'], when: before}\n"
        )
        call = {"id": "a", "type": "function", "function": {"name": "buy", "arguments": '{"what": "hat"}'}}
        messages = [
            {"role": "user", "content": "a hat please"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "bought"},
            {"role": "assistant", "content": "Bought."},
        ]
        path = tmp_path / "live.jsonl"
        path.write_text(json.dumps({"messages": messages}) + "\n")
        found = muarl("audit", path, "--rules", rules, "--out", tmp_path / "out")
        assert found.exit_code == 0, found.output
        named = {f.rule for _, f in read_findings(tmp_path / "out" / "findings.jsonl")}
        assert named == {"write-before-authentication", "write-without-consent", "unsaid-price"}
        assert "Rules: rules.yaml (1)." in found.output
        assert "policy (eligibility)" in found.output
        assert muarl("audit", path, "--rules", rules, "--fail-on", "catastrophic").exit_code == 3

    @pytest.mark.parametrize("level", ["catastrophic", "violation"])
    def test_without_safety_rules_nothing_can_be_judged(self, tmp_path: Path, level: str) -> None:
        call = {"id": "a", "type": "function", "function": {"name": "get_hat", "arguments": "{}"}}
        messages = [
            {"role": "user", "content": "which hats are there?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "a red one"},
            {"role": "assistant", "content": "A red one."},
        ]
        path = tmp_path / "live.jsonl"
        path.write_text(json.dumps({"messages": messages}) + "\n")
        found = muarl("audit", path, "--fail-on", level, "--out", tmp_path / "out")
        assert found.exit_code == 2
        for words in (f"--fail-on {level} cannot be judged", "1 of 1 conversations", "--rules"):
            assert words in found.output, words
        summary = json.loads((tmp_path / "out" / "summary.json").read_text())
        assert summary["catastrophic"] is None
        assert summary["layers"]["safety"] is None
        assert summary["rules_of"] == {"none": 1}
        assert muarl("audit", path).exit_code == 0
        rules = tmp_path / "rules.yaml"
        rules.write_text("auth_tools: [login]\nopen_tools: [get_hat]\n")
        assert muarl("audit", path, "--fail-on", level, "--rules", rules).exit_code == 0

    @pytest.mark.parametrize(
        ("text_", "says"),
        [
            ("auth: [x]", "auth is unknown"),
            ("auth_tools: x", "auth_tools must be a list of names"),
            ("consent: maybe", "consent must be true or false"),
            ("- x", "must hold fields"),
            ("obligations: [{name: A b, tools: [x], text: t}]", "lower case"),
            ("resources: [{table: t, key: k}]", "needs owner or held"),
            ("resources: [{tables: t}]", "resources"),
            ("{", "rules.yaml: line 1"),
            ("auth_tools: &a [*a]", "rules.yaml: line 1, column 17: *a is an alias"),
            ("[" * 3000, "nested deeper than 40 levels"),
            ("{[a]: b}", "a key must be a single value"),
            ("person: 2020-13-45\nperson: b", "rules.yaml: line 2, column 1: the key 'person' occurs twice"),
            ("consent: " + "9" * 5000, "more than 64 bits"),
        ],
    )
    def test_rules_that_are_wrong(self, tmp_path: Path, text_: str, says: str) -> None:
        rules = tmp_path / "rules.yaml"
        rules.write_text(text_)
        path = logged(("r-cancel-clean",), tmp_path / "live.jsonl")
        found = muarl("audit", path, "--rules", rules)
        assert found.exit_code == 2
        assert says in found.output

    def test_tau2_and_tau1_files(self, tmp_path: Path) -> None:
        case = next(c for c in cases() if c.id == "r-refused")
        messages = [m.to_json() | ({"id": m.tool_call_id} if m.role == "tool" else {}) for m in case.messages]
        simulation = {"id": "s1", "task_id": "7", "termination_reason": "user_stop", "messages": messages,
                      "reward_info": {"reward": 0.0}}  # fmt: skip
        info = {"environment_info": {"domain_name": "retail"}}
        tau2 = tmp_path / "results.json"
        tau2.write_text(json.dumps({"info": info, "tasks": [], "simulations": [simulation]}))
        found = muarl("audit", tau2, "--fail-on", "catastrophic")
        assert found.exit_code == 3, found.output
        assert "write-after-refusal" in found.output
        tau1 = tmp_path / "old.json"
        traj = [to_openai(m) for m in case.messages]
        tau1.write_text(json.dumps([{"task_id": 3, "reward": 1.0, "trial": 0, "info": {}, "traj": traj}]))
        again = muarl("audit", tau1, "--fail-on", "catastrophic")
        assert again.exit_code == 3, again.output

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ("", "is empty"),
            ('{"messages": []}\nno json\n', "line 2: not JSON"),
            ('{"messages": []}\n[1]\n', "line 2: must be an object"),
            ('{"text": 1}\n', "line 1: it lacks the field messages"),
            ('{"messages": [{"role": "pope"}]}\n', "messages[0].role"),
            ('{"messages": [{"role": "user", "content": 3}]}\n', "messages[0].content"),
            ('{"messages": [], "domain": "moon"}\n', "there are no rules for 'moon'"),
            ('{"turns": []}\n', "this row is no episode"),
            ("3", "must hold conversations"),
        ],
    )
    def test_bad_input_is_named(self, tmp_path: Path, content: str, says: str) -> None:
        path = tmp_path / "live.jsonl"
        path.write_text(content)
        found = muarl("audit", path, "--out", tmp_path / "out")
        assert found.exit_code == 2, found.output
        assert says in " ".join(found.output.split())
        assert str(path)[:20] in found.output
        assert not (tmp_path / "out" / "findings.jsonl").exists(), "nothing half-written is left"

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--domain", "moon"], "there are no rules for 'moon'"),
            (["--fail-on", "always"], "--fail-on must be"),
            (["--judge", "pass"], "--judge must be endpoint:MODEL"),
            (["--judge", "endpoint:x", "--max-cost", "1"], "--max-cost needs"),
            (["--judge", "endpoint:x", "--price", "2"], "--price"),
            (["--judge", "endpoint:x", "--price", "nan/1"], "--price: 'nan/1' must look like MODEL=2/8"),
            (["--judge", "endpoint:x", "--price", "-1/1"], "--price: '-1/1' must look like MODEL=2/8"),
            (["--judge", "endpoint:x", "--price", "2/8", "--max-cost", "nan"], "--max-cost must be a number"),
            (["--episodes", "eval"], "is no run with several files"),
        ],
    )
    def test_bad_options(self, tmp_path: Path, options: list[str], says: str) -> None:
        path = logged(("r-cancel-clean",), tmp_path / "live.jsonl")
        found = muarl("audit", path, *options)
        assert found.exit_code == 2
        assert says in found.output

    def test_nothing_there(self, tmp_path: Path) -> None:
        assert muarl("audit", tmp_path / "no").exit_code == 2
        assert "neither a run" in muarl("audit", tmp_path).output


class TestJudge:
    @pytest.fixture(autouse=True)
    def key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-x")

    def test_it_is_asked_and_accounted_for(self, tmp_path: Path) -> None:
        path = logged(("r-cancel-unasked-consent",), tmp_path / "live.jsonl")
        fault = {"kind": "policy-breach", "turn": 5, "quote": "order_id", "text": "It did not ask."}
        with FakeOpenAI([text(json.dumps({"answers": [], "faults": [fault]}))]) as server:
            found = muarl(
                "audit", path, "--judge", f"endpoint:m@{server.url}", "--price", "1000/1000", "--out", tmp_path / "out"
            )
        assert found.exit_code == 0, found.output
        by = {(f.rule, f.by) for _, f in read_findings(tmp_path / "out" / "findings.jsonl")}
        assert by == {("write-without-consent", "rule"), ("policy-breach", "judge")}
        summary = json.loads((tmp_path / "out" / "summary.json").read_text())
        assert (summary["judged"], summary["unjudged"]) == (1, 0)
        assert summary["judge_usage"]["cost"] == pytest.approx(0.015)

    def test_a_bound_on_one_that_does_not_say_what_it_took_is_refused(self, tmp_path: Path) -> None:
        path = logged(("r-cancel-clean",), tmp_path / "live.jsonl")
        options = ("--price", "2/8", "--max-cost", "1")
        for tokens, code in ((0, 2), (5, 0)):
            fine = text(json.dumps({"answers": [], "faults": []}), prompt_tokens=tokens, completion_tokens=tokens)
            with FakeOpenAI([fine]) as server:
                found = muarl("audit", path, "--judge", f"endpoint:m@{server.url}", *options)
                assert (found.exit_code, len(server.bodies)) == (code, 1 + (code == 0)), found.output
            said = "--max-cost: --judge: the answers of m do not say how many tokens they take"
            assert (said in " ".join(found.output.split())) == (code == 2)

    def test_its_failures_are_told_and_cost_nothing_else(self, tmp_path: Path) -> None:
        path = logged(("r-cancel-unasked-consent",), tmp_path / "live.jsonl")
        with FakeOpenAI([text("I would rather not.")]) as server:
            found = muarl("audit", path, "--judge", f"endpoint:m@{server.url}", "--fail-on", "violation")
        assert found.exit_code == 3
        assert "no answer for 1" in found.output


def judging(body: dict[str, Any]) -> Answer:
    """A judge that finds everything done, and answers every question it is asked."""
    asked = re.findall(r"^(Q\d+)\. ", body["messages"][-1]["content"], re.MULTILINE)
    return text(json.dumps({"answers": [{"id": name, "met": True} for name in asked], "faults": []}))


def test_a_judge_in_an_evaluation_is_paid_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    with FakeOpenAI([judging]) as server:
        options = [
            "--agent",
            "expert",
            "--tasks",
            "3",
            "--trials",
            "1",
            "--audit-judge",
            f"endpoint:m@{server.url}",
            "--price",
            "m=1/1",
        ]
        found = muarl("eval", "retail-generated", *options, f"runs_dir={tmp_path}", "eval.baseline=false")
        assert found.exit_code == 0, found.output
        folder = tmp_path / "eval-retail-generated"
        summary = json.loads((folder / "summary.json").read_text())
        assert (summary["audit"]["judged"], summary["audit"]["unjudged"]) == (3, 0)
        assert summary["judge_usage"]["requests"] == 3
        before = len(server.requests)
        again = muarl("eval", "--resume", folder)
        assert again.exit_code == 0, again.output
        assert len(server.requests) == before + 1, "only whether it is still there"
        assert json.loads((folder / "summary.json").read_text())["audit"]["judged"] == 3


def test_a_line_of_tasks_that_is_no_text_is_passed_over(run: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    shutil.copytree(run, theirs)
    with open(theirs / "tasks.jsonl", "ab") as file:
        file.write(b'{"id": "\xff\xfe"}\n')
    found = muarl("audit", theirs)
    assert found.exit_code == 0, found.output
