"""The run report: complete, honest about what is missing, and closed to whatever models and users wrote."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.audit.findings import Finding, write_findings
from muarl.audit.summary import AuditSummary
from muarl.basics.errors import MuarlError
from muarl.domains.auditing import UNDECLARED, AuditRules
from muarl.domains.tasks import Action, Task
from muarl.observe.rundir import RunDirectory
from muarl.pages.charts import Series, area_chart, line_chart, number, percent, smooth, ticks
from muarl.pages.conversations import choose_tasks
from muarl.pages.markup import Html, escape, tag
from muarl.report.report import ReportData, collect, render, write_report
from muarl.report.report_story import story
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from support.pages import Page

CHROMIUM = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome", "chrome") if (p := shutil.which(n))), None
)


@pytest.fixture(scope="module")
def page(finished_run: RunDirectory) -> Page:
    return Page(render(collect(finished_run)))


class TestContent:
    def test_sections_and_scores(self, page: Page, finished_run: RunDirectory) -> None:
        for heading in ("Scores", "Learning", "Behaviour", "By task type", "Conversations", "Setup"):
            assert heading in page.shown
        summary = finished_run.read_json("summary")
        assert percent(summary["cold_start"]["success"]) in page.shown
        assert percent(summary["rl"]["success"]) in page.shown
        assert "doing nothing at all solves 4.1%" in page.shown
        assert "agenda, seed 77" in page.shown and "9.2 minutes" in page.shown and "2.1 GiB" in page.shown

    def test_curves_have_words_for_those_who_cannot_see_them(self, page: Page) -> None:
        labels = [a["aria-label"] or "" for n, a in page.tags if n == "svg" and "aria-label" in a]
        assert len(labels) >= 9
        assert any(re.match(r"Success: \d+% at step 1, \d+% at step 60", x) for x in labels)

    def test_conversations_before_and_after(self, page: Page) -> None:
        assert sum(n == "article" for n, _ in page.tags) == 4
        for text in ("✗ failed", "✓ solved", "1 write without consent", "Gold actions", "matches a gold action"):
            assert text in page.shown
        assert "You are Yara Silva" in page.shown

    def test_no_scripts_no_requests(self, page: Page) -> None:
        names = {n for n, _ in page.tags}
        assert not names & {"script", "link", "img", "iframe", "object", "form", "base"}
        for _, attributes in page.tags:
            assert not any(k.startswith("on") or k in ("src", "srcset", "data", "action") for k in attributes)
            assert (attributes.get("href") or "#").startswith("#")
        css = render(ReportData("x"))
        assert "url(" not in css and "@import" not in css
        assert "sk-not-shown" not in page.shown

    def test_a_broken_run_still_has_a_page(self, tmp_path: Path) -> None:
        run = RunDirectory(tmp_path, "broken")
        run.log({"loss": 3.0}, phase="cold_start", step=1)
        run.log({"loss": float("nan")}, phase="cold_start", step=2)
        with pytest.raises(MuarlError), run:
            raise MuarlError("The disk is full: <model>")
        shown = Page(render(collect(run))).shown
        assert "This run failed" in shown and "The disk is full: <model>" in shown
        assert "It has not been evaluated yet" in shown

    def test_a_run_without_a_cold_start_does_not_speak_of_one(self, finished_run: RunDirectory) -> None:
        data = collect(finished_run)
        metrics = [row for row in data.metrics if row["phase"] != "cold_start"]
        shown = Page(render(replace(data, metrics=metrics))).shown
        assert "before reinforcement learning" in shown and "Before RL" in shown
        assert "after the cold start" not in shown and "first from examples" not in shown
        assert "after the cold start" in Page(render(data)).shown

    def test_only_the_cold_start_was_evaluated(self, finished_run: RunDirectory) -> None:
        data = collect(finished_run)
        summary = {k: v for k, v in data.summary.items() if k != "rl"}
        shown = Page(render(replace(data, summary=summary, after=()))).shown
        assert "The other evaluation is missing" in shown and "the conversation" in shown

    def test_an_evaluation_on_its_own(self, finished_run: RunDirectory, tmp_path: Path) -> None:
        run = RunDirectory(tmp_path, "eval")
        run.write_episodes("eval", finished_run.read_episodes("eval-after"))
        run.write_summary({"do_nothing": 0.04, "user_eval": "agenda"})
        shown = Page(render(collect(run))).shown
        assert "An agent served simulated customers" in shown and "Do-nothing baseline" in shown
        assert "never seen" not in shown and "Cold start" not in shown and "missing" not in shown
        assert "Writes without consent" in shown and "By task type" in shown

    def test_training_on_a_benchmark_is_said(self) -> None:
        block = {"success": 0.5, "interval": [0.4, 0.6], "tasks": 20}
        summary = {"cold_start": block, "rl": {**block, "success": 0.9}, "trained_on_benchmark": True}
        shown = Page(render(ReportData("x", summary=summary))).shown
        assert "Benchmark tasks were in training" in shown and "never seen" not in shown

    @pytest.mark.parametrize(("reward", "told"), [("outcome", False), ("layers", True), ("shaping and layers", True)])
    def test_says_what_the_agent_was_paid_for(self, reward: str, told: bool) -> None:
        page = str(story({"reward": reward}, [], {"cold_start", "rl"}))
        assert "rewarded only if a conversation left the database exactly as it should be" in page
        assert ("and less where it broke a rule" in page) is told

    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            ((0.5, [0.4, 0.6]), (0.45, [0.35, 0.55]), "Practice did not make it better"),
            ((0.5, [0.4, 0.6]), (0.55, [0.45, 0.65]), "chance may explain"),
        ],
    )
    def test_says_so_where_nothing_was_gained(
        self, before: tuple[float, list[float]], after: tuple[float, list[float]], expected: str
    ) -> None:
        blocks = {k: {"success": v[0], "interval": v[1]} for k, v in (("cold_start", before), ("rl", after))}
        assert expected in Page(render(ReportData("x", summary=blocks))).shown

    def test_the_command_rebuilds_it(self, finished_run: RunDirectory, tmp_path: Path) -> None:
        import typer

        from muarl_tools.commands.report import report

        app = typer.Typer()
        app.command()(report)
        out = tmp_path / "page.html"
        done = CliRunner().invoke(app, [str(finished_run.path), "--out", str(out), "--show", "1"])
        assert done.exit_code == 0, done.output
        assert sum(n == "article" for n, _ in Page(out.read_text(encoding="utf-8")).tags) == 1
        missing = CliRunner().invoke(app, [str(tmp_path / "none")])
        assert isinstance(missing.exception, MuarlError)


HOSTILE = (
    '</pre></style><script>alert(1)</script><img src=x onerror=alert(2)>" onload="alert(3)" \'&lt; \ud800\x00\u202e#'
)


def hostile_data() -> ReportData:
    call = ToolCall("1", HOSTILE, {HOSTILE: HOSTILE})
    bad = ToolCall("2", HOSTILE, invalid=HOSTILE, raw=HOSTILE)
    messages = [
        Message("system", HOSTILE),
        Message("user", HOSTILE + "###STOP###"),
        Message("assistant", HOSTILE, (call, bad)),
        Message("tool", HOSTILE * 9, tool_call_id="1", error=True),
        Message("tool", HOSTILE, tool_call_id="lost"),
    ]
    made = [
        Episode(
            "e", HOSTILE, HOSTILE, [Turn(m) for m in messages], StopReason.USER_STOP, error=HOSTILE,
            verdict=Verdict(r, {HOSTILE: r, "b": 1.0}, {}, HOSTILE), tags={"intent": HOSTILE, "persona": HOSTILE},
        )
        for r in (0.0, 1.0)
    ]  # fmt: skip
    estimate = {"value": 0.5, "interval": [0.4, 0.6], "n": 3}
    block = {
        "success": 0.5, "interval": [0.4, 0.6], "tasks": 3, "behaviour": {HOSTILE: 0.5, "stop/user_stop": 1.0},
        "by_tag": {HOSTILE: {HOSTILE: estimate}}, "pass_hat": {HOSTILE: estimate, "2": estimate},
    }  # fmt: skip
    return ReportData(
        name=HOSTILE,
        summary={
            "cold_start": block,
            "rl": block,
            "user_eval": HOSTILE,
            "user_train": {HOSTILE: HOSTILE},
            "seed": HOSTILE,
        },
        metrics=[{"phase": HOSTILE, "step": s, HOSTILE: 0.5, "success": 0.5, "kl": HOSTILE} for s in range(3)],
        before=made[:1],
        after=made[1:],
        tasks={HOSTILE: {"scenario": HOSTILE, "actions": [{"name": HOSTILE, "arguments": {HOSTILE: HOSTILE}}]}},
        config=HOSTILE,
        versions={HOSTILE: HOSTILE},
        status={"state": "failed", "message": HOSTILE},
    )


class TestHostileContent:
    def test_everything_is_escaped(self, tmp_path: Path) -> None:
        path = write_report(tmp_path / "r.html", hostile_data())
        html = path.read_text(encoding="utf-8")
        page = Page(html)
        assert not {n for n, _ in page.tags} & {"script", "img"}
        assert not any(k.startswith("on") for _, attributes in page.tags for k in attributes)
        assert "alert(1)" in page.shown  # shown as text, not lost
        assert "\x00" not in html and "\u202e" not in html
        assert html.count("</style>") == 1

    def test_figures_that_are_no_figures(self) -> None:
        blocks = [
            {"success": "high", "interval": "wide", "behaviour": [1], "by_tag": {"intent": 3}, "pass_hat": {"1": 0.5}},
            {"success": 0.5, "interval": None, "behaviour": None, "by_tag": {"intent": {"a": None}}, "pass_hat": None},
        ]
        summary = {"cold_start": blocks[0], "rl": blocks[1], "do_nothing": None, "seconds": "long"}
        Page(render(ReportData("x", summary=summary, metrics=[{"step": None}, {"phase": 3, "step": "a", "loss": []}])))

    def test_markup(self) -> None:
        assert tag("p", "<b>", Html("<i></i>"), None, ["&", 3], class_='"x"', hidden=True, title=None) == (
            '<p class="&quot;x&quot;" hidden>&lt;b&gt;<i></i>&amp;3</p>'
        )
        assert escape("a\x07b") == "a\\u0007b"


class TestCharts:
    def test_ticks_span_the_figures(self) -> None:
        assert ticks(0, 1) == [0, 0.5, 1.0]
        assert ticks(8.1, 11.4) == [8, 10, 12]
        for low, high in ((0.0, 0.0), (-3.0, 7.0), (1e-9, 2e-9), (1e6, 1e6 + 1), (-2.0, -1.0)):
            found = ticks(low, high)
            assert found[0] <= low and found[-1] >= high and 2 <= len(found) <= 7

    def test_figures_in_words(self) -> None:
        assert [percent(v) for v in (0.914, 0.0421, 0.003, 0, 1)] == ["91%", "4.2%", "0.3%", "0%", "100%"]
        assert [number(v) for v in (0, 0.00003, 0.0123, 0.4, 12.34, 123.4, 1234.5)] == [
            "0", "3.0e-05", "0.012", "0.4", "12.3", "123", "1,234",
        ]  # fmt: skip

    def test_smoothing_keeps_the_ends_and_short_lines(self) -> None:
        points = [(float(i), float(i % 2)) for i in range(60)]
        smoothed = smooth(points)
        assert smoothed[0] == points[0] and smoothed[-1] == points[-1] and len(smoothed) == 60
        assert max(abs(y - 0.5) for _, y in smoothed[3:-3]) < 0.2
        assert smooth(points[:5]) == points[:5]

    def test_odd_series(self) -> None:
        assert line_chart("x", [Series("a", [])]) is None
        assert line_chart("x", [Series("a", [(1, float("nan"))])]) is None
        assert line_chart("x", [Series("a", [(5, 2.0)])]) is not None
        assert line_chart("x", [Series("a", [(1, 2.0), (2, 2.0)])]) is not None
        assert area_chart("x", [Series("a", [(1, 0.5)]), Series("b", [(1, 0.5), (2, 0.5)])]) is None

    @pytest.mark.parametrize("high", [1.0, 0.0015, 0.000015, 2_500_000.0])
    def test_labels_of_an_axis_have_room(self, high: float) -> None:
        drawn = str(line_chart("x", [Series("a", [(1, 0.0), (2, high)])]))
        labels = re.findall(r'<text x="([\d.]+)"[^>]*class="end"[^>]*>([^<]+)<', drawn)
        assert len(labels) >= 3 and all(float(x) >= 6.3 * len(label) for x, label in labels), labels


def test_tasks_are_chosen_honestly() -> None:
    def make(task: str, reward: float) -> Episode:
        return Episode("e", task, "d", [], StopReason.USER_STOP, verdict=Verdict(reward), tags={"intent": task[0]})

    outcomes = {"a1": (0, 1), "a2": (0, 1), "b1": (0, 1), "c1": (0, 0), "d1": (1, 0), "e1": (1, 1)}
    before = [make(t, b) for t, (b, _) in outcomes.items()]
    after = [make(t, a) for t, (_, a) in outcomes.items()]
    assert [b.task_id for b, _ in choose_tasks(before, after)] == ["a1", "b1", "c1", "d1"]
    assert choose_tasks(before, []) == []
    only = [e for e in before if e.task_id == "e1"], [e for e in after if e.task_id == "e1"]
    assert len(choose_tasks(*only)) == 1


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium")
class TestInABrowser:
    FLAGS = (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", "--no-first-run", "--hide-scrollbars", "--allow-file-access-from-files",
        "--enable-logging=stderr",
    )  # fmt: skip

    def browse(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        assert CHROMIUM is not None
        command = [CHROMIUM, *self.FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)

    @pytest.mark.parametrize("width", [390, 1280])
    def test_nothing_overflows_and_nothing_is_refused(
        self, finished_run: RunDirectory, tmp_path: Path, width: int
    ) -> None:
        write_report(tmp_path / "report.html", collect(finished_run))
        write_report(tmp_path / "hostile.html", hostile_data())
        (tmp_path / "frame.html").write_text(
            f"""<iframe id=a src=report.html width={width} height=900></iframe>
            <iframe id=b src=hostile.html width={width} height=900></iframe>
            <pre id=out></pre><script>onload = () => {{
              const look = id => {{ const d = document.getElementById(id).contentDocument, e = d.documentElement;
                return {{ scroll: e.scrollWidth, width: e.clientWidth, charts: d.querySelectorAll("figure svg").length,
                  ink: getComputedStyle(d.body).fontSize, height: e.scrollHeight }} }};
              document.getElementById("out").textContent = JSON.stringify([look("a"), look("b")]) }}</script>""",
            encoding="utf-8",
        )
        done = self.browse(tmp_path, "--dump-dom", (tmp_path / "frame.html").as_uri())
        found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
        assert found is not None, done.stderr
        report, hostile = json.loads(found[1])
        assert report["charts"] >= 9 and report["height"] > 3000
        assert report["scroll"] <= report["width"] and hostile["scroll"] <= hostile["width"]
        assert "Refused to" not in done.stderr and "violates" not in done.stderr  # nothing tried to load or run

    def test_it_paints(self, finished_run: RunDirectory, tmp_path: Path) -> None:
        page = write_report(tmp_path / "report.html", collect(finished_run))
        shot = tmp_path / "shot.png"
        self.browse(tmp_path, f"--screenshot={shot}", "--window-size=1280,1600", page.as_uri())
        assert shot.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and shot.stat().st_size > 50_000


class TestAudit:
    """The audit beside success, and each finding at its message."""

    CALL = ToolCall("c1", "refund", {"order_id": "#1"})
    ASKS = AuditRules()
    UNASKED = Finding("policy", "write-without-consent", "violation", 1, "It wrote unasked.", "refund")

    def _run(self, root: Path, found: list[Finding] | None, rules: AuditRules = ASKS) -> RunDirectory:
        messages = [
            Message("user", "Half of it back, please."),
            Message("assistant", None, (self.CALL,)),
            Message("tool", "ok", tool_call_id="c1", name="refund"),
            Message("assistant", "Done."),
        ]
        e = Episode("a#0", "a", "shop", [Turn(m) for m in messages], StopReason.USER_STOP, verdict=Verdict(1.0))
        task = Task("a", "shop", "You want half of it back.", (Action("refund", {"order_id": "#1"}),))
        summary = AuditSummary()
        summary.add(e, found or (), rules=rules)
        with RunDirectory(root, "eval") as run:
            run.write_tasks([task])
            run.write_episodes("eval", [e])
            if found is not None:
                write_findings(run.path / "findings.jsonl", [({"file": "eval", "episode": "a#0"}, found)])
            more = {"agent": "puppet", "split": "test", "cost": {"agent": 1.5, "total": 1.75}}
            run.write_summary({**more, "audit": summary.to_json()})
        return run

    def _section(self, page: Page) -> str:
        rest = page.html[page.html.index('id="audit"') :]
        return rest[: rest.index("</section>")]

    def test_a_write_that_was_not_agreed_to_is_not_green_and_the_finding_is_at_its_turn(self, tmp_path: Path) -> None:
        page = Page(render(collect(self._run(tmp_path, [self.UNASKED]))))
        assert "matches a gold action" in page.shown
        assert "✓ matches a gold action" not in page.shown
        talk = page.html[page.html.index('class="talk"') :]
        assert talk.index("Half of it back") < talk.index("It wrote unasked.") < talk.index("Done.")
        assert ".finding" in page.html[: page.html.index("</style>")]

    def test_what_an_audit_cleared_is_green_and_what_nobody_audited_is_not(self, tmp_path: Path) -> None:
        assert "✓ matches a gold action" in Page(render(collect(self._run(tmp_path / "a", [])))).shown
        assert "✓ matches a gold action" not in Page(render(collect(self._run(tmp_path / "b", None)))).shown

    def test_the_audit_stands_beside_success_and_says_what_it_did_not_check(self, tmp_path: Path) -> None:
        page = Page(render(collect(self._run(tmp_path / "a", [self.UNASKED]))))
        section = self._section(page)
        assert "Catastrophic failures" in section and "write without consent" in section
        assert "safety (other people" in section
        assert page.html.index('id="scores"') < page.html.index('id="audit"')
        for words in ("The agent “puppet” served simulated customers", "Split", "$1.75"):
            assert words in page.shown
        unknown = Page(render(collect(self._run(tmp_path / "b", [], UNDECLARED))))
        section = self._section(unknown)
        assert section.count("not checked") >= 4
        assert section.count("<b>100%</b>") == 2, "of success and recovery alone"

    def test_before_and_after_stand_beside_each_other(self) -> None:
        summary = AuditSummary()
        bad = Episode("a#0", "a", "shop", [], StopReason.USER_STOP, verdict=Verdict(0.0))
        summary.add(bad, [replace(self.UNASKED, severity="catastrophic")], rules=AuditRules())
        audits = {"cold_start": summary.to_json(), "rl": AuditSummary().to_json()}
        page = Page(render(ReportData("x", {"audit": audits})))
        section = page.html[page.html.index('id="audit"') :]
        assert section.index("Before RL") < section.index("After RL") < section.index("100%")

    @pytest.mark.parametrize("audit", [None, [], {"layers": 3}, {"rl": {"layers": {}, "rules": {"x": 3}}}, {"rl": 1}])
    def test_a_broken_summary_breaks_no_page(self, audit: Any) -> None:
        assert render(ReportData("x", {"audit": audit}))
