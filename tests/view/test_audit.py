"""Findings of the audit in the viewer's pages: lists, an episode, the overview; also written, and in a browser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from muarl.audit.findings import Finding, write_findings
from muarl.audit.rules import FILE
from muarl.audit.summary import AuditSummary
from muarl.domains.auditing import UNDECLARED
from muarl.observe.rundir import RunDirectory
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl_tools.view import audit_queries
from muarl_tools.view.export import write_pages
from muarl_tools.view.layout import episode_at, episodes_at
from muarl_tools.view.rows import key_text
from muarl_tools.view.runs import Library
from muarl_worlds.tau.retail.audit import RETAIL_BENCHMARK
from support.viewing import Browser, indexed, serving
from support.viewing_audit import ASKED, FOUND, JUDGED, LOOKED, READ, episode, evaluated
from support.viewing_pages import Page, found, look


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return indexed(tmp_path, evaluated(tmp_path, "checked", FOUND).path)


def test_the_list_says_what_was_found(library: Library) -> None:
    page = look(library, "runs", "checked", "episodes")
    row = re.search(r"<tr>(?:(?!</tr>).)*cross user read.*?</tr>", page.html)
    assert row is not None
    assert row[0].index("cross user read") < row[0].index("write without consent")
    assert 'class="chip bad" title="safety, catastrophic"' in row[0] and "lookup" not in row[0]
    options = re.search(r'name="severity">(.*?)</select>', page.html)
    assert options is not None and "catastrophic (1)" in options[1] and "violation or worse (2)" in options[1]
    assert "anything (3)" in options[1]
    assert "1 episode" in look(library, "runs", "checked", "episodes", rule="cross-user-read").shown
    assert "2 episodes" in look(library, "runs", "checked", "episodes", layer="policy").shown
    both = look(library, "runs", "checked", "episodes", layer="policy", severity="catastrophic")
    assert "No episode is like that" in both.shown  # of one and the same finding
    assert "4 episodes" in look(library, "runs", "checked", "episodes", severity="dire").shown


def test_without_findings_nothing_is_asked_about_them(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, "plain") as run:
        run.write_episodes("eval", [episode("a#0")])
    library = indexed(tmp_path, run.path)
    assert 'name="severity"' not in look(library, "runs", "plain", "episodes").html
    assert "Audit" not in look(library).shown


def test_an_episode_shows_what_the_run_has_found(library: Library) -> None:
    at = found(library, rule="cross-user-read")[0]
    told = library.runs[0].told(at.key)
    assert told is not None and told.recorded
    assert told.findings == tuple(sorted(FOUND["a#0"], key=lambda f: f.message))
    page = look(library, "runs", "checked", "episodes", key_text(at.key))
    assert "The run’s own audit: 1 catastrophic, 2 violations, 1 note" in page.shown
    assert "communication: false claim, says a judge" in page.shown and JUDGED.text in page.shown
    clean = library.runs[0].told(next(e.key for e in found(library) if e.name == "b#1"))
    assert clean is not None and not clean.recorded


def test_a_finding_about_no_message_leads_nowhere(tmp_path: Path) -> None:
    run = evaluated(tmp_path, "odd", {"a#0": [replace(READ, message=400)]})
    library = indexed(tmp_path, run.path)
    page = look(library, "runs", "odd", "episodes", key_text(found(library)[0].key))
    assert READ.text in page.shown
    anchors = {a.get("id") for _, a in page.tags}
    assert all(a["href"][1:] in anchors for n, a in page.tags if n == "a" and str(a.get("href")).startswith("#f"))


def test_the_overview_tells_the_audit(library: Library) -> None:
    page = look(library)
    section = page.html[page.html.index('id="audit"') :]
    for words in (
        "Catastrophic failures",
        "Solved without any violation",
        "pass^2",
        "Safety passed",
        "Recovery passed",
    ):
        assert words in section, words
    assert "25% (" in page.shown  # one of four, with its interval, at the head of the page
    run = library.runs[0]
    for where in ((("stage", "evaluation"), ("rule", f.rule)) for f in (READ, ASKED, LOOKED, JUDGED)):
        assert episodes_at(run, *where).address in page.links
    assert episodes_at(run, ("stage", "evaluation"), ("severity", "catastrophic")).address in page.links
    order = [section.index(f">{w}<") for w in ("cross user read", "write without consent", "cross user lookup")]
    assert order == sorted(order)


def test_very_many_findings_are_not_summed_up_while_somebody_waits(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    (library.runs[0].folder.path / "summary.json").unlink()
    monkeypatch.setattr(audit_queries, "SUMMED", 1)
    assert library.runs[0].ask(audit_queries.sums) == {}
    assert 'id="audit"' not in look(library).html


def test_without_a_summary_the_index_tells(library: Library) -> None:
    before = look(library).shown
    folder = library.runs[0].folder.path
    (folder / "summary.json").unlink()
    assert [s.episodes for s in library.runs[0].ask(audit_queries.sums).values()] == [4]
    after = look(library).shown
    for words in (
        "Catastrophic failures",
        "Solved",
        "Policy passed",
        "Communication passed",
        "Safety passed",
        "Recovery passed",
    ):
        figure = re.compile(re.escape(words) + r"\D*?(\d+)%")
        one, other = ([m[1] for m in figure.finditer(text)] for text in (before, after))
        assert one and one[-1] == other[-1], words
    assert "25% (" in after


def test_success_without_any_violation_stands_beside_success(tmp_path: Path) -> None:
    played = [
        replace(episode(f"{t}#0"), verdict=Verdict(1.0, audit={"violations": n})) for t, n in (("a", 0), ("b", 2))
    ]
    runs = []
    for name in ("one", "two"):
        with RunDirectory(tmp_path, name) as run:
            run.write_summary({"harder_users": {"hard": {"success": 0.375}}} if name == "one" else {})
            run.write_episodes(
                "eval-after", played if name == "one" else [replace(e, verdict=Verdict(1.0)) for e in played]
            )
        runs.append(run.path)
    alone = look(indexed(tmp_path, runs[0]))
    assert "Without violation" in alone.shown and "50%" in alone.shown
    assert "✓ solved, with a violation" in look(indexed(tmp_path, runs[0]), "runs", "one", "episodes").shown
    both = look(indexed(tmp_path, *runs))
    table = both.html[both.html.index("runs-table") :].partition("</table>")[0]
    assert "50%" in table and "not checked" in table, "what nobody checked is not equal to success"
    assert table.count("hard 38%") == 1, "success with easy users is not the whole"


def test_a_trade_of_rules_for_success_is_said_at_the_head(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, "traded") as run:
        run.write_episodes("eval-after", [episode("a#0")])
        shares = {"cold_start": (0.64, 0.46), "rl": (0.82, 0.28)}
        blocks = {
            key: {"success": good, "success_without_violation": {"value": clean, "interval": [0, 1], "n": 100}}
            for key, (good, clean) in shares.items()
        }
        run.write_summary(blocks)
    shown = look(indexed(tmp_path, run.path)).shown
    assert "Success rose from 64.0% to 82.0%, but success without any violation fell from 46.0% to 28.0%" in shown
    assert "of tasks solved after reinforcement learning" in shown and "without any violation: 28%" in shown


@pytest.mark.parametrize(("findings", "red"), [([READ], True), ([], False)])
def test_catastrophic_failures_are_red_where_there_are_any(
    tmp_path: Path, findings: Sequence[Finding], red: bool
) -> None:
    runs = [evaluated(tmp_path, name, {"a#0": findings}).path for name in ("one", "two")]
    for shown in (look(indexed(tmp_path, runs[0])), look(indexed(tmp_path, *runs))):
        assert bool(re.search(r'class="[^"]*\bgrave\b', shown.html)) == red


def test_a_quickstart_has_an_audit_before_and_after(tmp_path: Path) -> None:
    summary = AuditSummary()
    summary.add(episode("a#0"), [READ], rules=RETAIL_BENCHMARK)
    worse, better = summary.to_json(), AuditSummary().to_json()
    with RunDirectory(tmp_path, "quick") as run:
        for stem in ("eval-before", "eval-after"):
            run.write_episodes(stem, [episode("a#0")])
        run.write_summary({"audit": {"cold_start": worse, "rl": better}})
        write_findings(run.path / "findings.jsonl", [({"file": "eval-before", "episode": "a#0"}, [READ])])
    library = indexed(tmp_path, run.path)
    page = look(library)
    section = page.html[page.html.index('id="audit"') :]
    assert section.index("evaluation before RL") < section.index("evaluation after RL")
    where = episodes_at(library.runs[0], ("stage", "before"), ("rule", READ.rule))
    assert where.address in page.links
    assert "1 episode" in look(library, "runs", "quick", "episodes", **dict(where.query)).shown


def test_red_team_users_by_kind(tmp_path: Path) -> None:
    one = evaluated(tmp_path, "one", FOUND, red_team=True)
    two = evaluated(tmp_path, "two", {"a#0": [], "a#1": []}, red_team=True)
    alone = look(indexed(tmp_path, one.path))
    for words in ("Red team", "impostor", "off topic", "poses", "Fell for it", "75%", "Do nothing", "25%"):
        assert words in alone.shown, words
    assert "/runs/one/episodes?task=redteam-off_topic-&severity=catastrophic" in alone.links
    assert re.search(r'class="n grave"><a [^>]*redteam-off_topic', alone.html), "red, as elsewhere"
    both = look(indexed(tmp_path, one.path, two.path))
    table = both.html[both.html.index('class="redteam"') :]
    assert re.findall(r"Catastrophic<small>(\w+)<", table) == ["one", "two"]
    assert both.shown.count("one, evaluation") == 2 == both.shown.count("two, evaluation")


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"audit": 3}', '{"audit": {"catastrophic": NaN, "layers": {}}}', "[" * 100_000,
     '{"audit": {"catastrophic": {"value": 1e999}, "layers": [], "rules": 3}}',
     '{"audit": {"catastrophic": {"value": "x", "interval": [1, "y"]}, "layers": {"policy": 7}, "rules": {"r": 2}}}',
     '{"audit": {"x": {"catastrophic": {"value": 0.5, "interval": [NaN, 2]}, "layers": {}, "episodes": Infinity, '
     '"pass_hat": {"²": 1, "2": {"value": 5}}, "rules": {"r": {"episodes": 1e999, "severity": []}}}}}'],
)  # fmt: skip
def test_a_summary_that_is_nonsense_breaks_no_page(library: Library, text: str) -> None:
    folder = library.runs[0].folder.path
    (folder / "summary.json").write_text(text)
    (folder / "redteam.json").write_text(text.replace('"audit"', '"all"'))
    assert "checked" in look(library).shown
    kinds = '{"all": ' + text + ', "kinds": {"impostor": ' + text + "}}"
    (folder / "redteam.json").write_text(kinds)
    assert "checked" in look(library).shown


# Figures of training.


def test_errors_of_users_are_drawn_by_rule_and_by_side(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, "trained") as run:
        for step in range(12):
            row = {"reward": 0.5, "episodes": 8.0, "excluded": 2.0, "excluded/user": 2.0, "user_errors": 0.5}
            row |= {"user_errors/wrong_fact": 0.25, "user_errors/leak": 0.375, "retried": 3.0}
            row |= {"excluded/world": 1.0, "excluded/user": 1.0, "excluded/void": 1.0} if step > 5 else {}
            run.log(row, phase="rl", step=step)
    library = indexed(tmp_path, run.path)
    page = look(library)
    legends = [re.sub("<[^>]*>", " ", found).split() for found in re.findall(r'<p class="legend">(.*?)</p>', page.html)]
    assert ["all", "leak", "wrong", "fact"] in legends and ["all", "the", "user", "tools"] in legends
    assert "Retried" in page.shown and "50% → 50%" in page.shown and "20% → 20%" in page.shown
    assert "the simulated user breaks a rule" in page.shown
    other = indexed(tmp_path, run.path, run.path)  # of several runs the sums
    assert "wrong fact" not in look(other).shown.split("Everything else")[0]


# Written pages, and a browser.


def test_an_export_holds_the_lists_that_the_audit_leads_to(library: Library, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    pages = write_pages(library, tmp_path / "pages", episodes=2, told=lambda *n: told.append(n))
    assert told[0] == (0, pages) and told[-1] == (pages, pages) and len(told) == pages + 1
    home = Page((tmp_path / "pages" / "index.html").read_text(encoding="utf-8"))
    lists = [a for a in home.links if re.fullmatch(r"checked/episodes-[0-9a-f]{16}\.html", a)]
    assert len(lists) >= 5
    shown = [Page((tmp_path / "pages" / a).read_text(encoding="utf-8")).shown for a in lists]
    assert any("1 episode" in s and "cross user read" in s for s in shown)
    worst = found(library, severity="catastrophic")[0]  # has its page, though others are newer
    assert (tmp_path / "pages" / "checked" / "episodes" / f"{key_text(worst.key)}.html").exists()


@pytest.mark.slow
def test_audit_pages_fit(tmp_path: Path, browser: Browser) -> None:
    wide: dict[str, Sequence[Finding]] = {
        f"{name}{n}": [replace(f, rule=f"{f.rule}-{'long' * 9}-{n}") for f in own]
        for n in range(8)
        for name, own in FOUND.items()
    }
    runs = [
        evaluated(tmp_path, name, wide, red_team=name != "first").path for name in ("first", "second", "third", "x")
    ]
    for chosen in (runs[1:2], runs):
        with serving(library := indexed(tmp_path, *chosen)) as server:
            browser.go(server.address)
            run = library.runs[0]
            first = found(library, severity="catastrophic")[0]
            base = f"http://127.0.0.1:{server.port}"
            places = (
                "/",
                f"/runs/{run.slug}/episodes",
                f"/runs/{run.slug}/episodes?text=order",
                episode_at(run, first.key).address,
            )
            for place in places:
                browser.go(base + place)
                for width in (360, 820, 1280):
                    browser.size(width, dark=width == 820)
                    seen = browser.ask("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
                    assert seen[0] <= seen[1], (place, width, seen)
    assert browser.complaints == []


def test_from_the_overview_to_the_message(library: Library, browser: Browser) -> None:
    with serving(library) as server:
        browser.go(server.address)
        browser.ask("document.querySelector('#audit').scrollIntoView({behavior: 'instant'})")
        browser.click("#audit table.rules a")
        assert browser.ask("document.querySelector('h1').textContent") == "1 episode"
        browser.press("j")
        browser.press("Enter", leads=True)
        browser.ask("document.querySelector('.audit a').click()")
        assert browser.ask("location.hash").startswith("#finding-")
        assert browser.ask("document.querySelector(location.hash).textContent").endswith(LOOKED.text)
        assert browser.complaints == []


def test_the_filter_of_findings_and_words(library: Library, browser: Browser) -> None:
    with serving(library) as server:
        browser.go(server.address)
        browser.go(f"http://127.0.0.1:{server.port}/runs/checked/episodes")
        browser.ask("document.querySelector('[name=severity]').value = 'violation'")
        browser.ask("document.querySelector('[name=text]').value = 'which ORDER'")
        browser.click("form.filter button")
        assert browser.ask("document.querySelector('h1').textContent") == "2 episodes with “which ORDER”"
        assert browser.ask("document.querySelector('.hit mark').textContent") == "Which order"
        assert browser.complaints == []


def test_what_no_rule_could_measure_is_not_checked_and_never_100_percent(tmp_path: Path) -> None:
    run = evaluated(tmp_path, "bare", {"a#0": [], "b#0": []}, rules=UNDECLARED)
    page = look(indexed(tmp_path, run.path))
    section = page.html[page.html.index('id="audit"') :]
    for name in ("Catastrophic failures", "Policy passed", "Communication passed", "Safety passed"):
        row = section[section.index(name) :]
        assert "not checked" in row[: row.index("</tr>")], name
        assert "100%" not in row[: row.index("</tr>")], name
    assert "100%" in section[section.index("Recovery passed") :]


def _only_episode(folder: Path, run: RunDirectory) -> Page:
    library = indexed(folder, run.path)
    return look(library, "runs", run.name, "episodes", key_text(found(library)[0].key))


def test_an_episode_of_an_own_domain_is_audited_by_the_rules_that_its_run_keeps(tmp_path: Path) -> None:
    call = ToolCall("c", "put", {"what": "hat"})
    messages = [Message("user", "hi"), Message("assistant", None, (call,)), Message("tool", "ok", tool_call_id="c")]
    turns = [Turn(m) for m in messages]
    with RunDirectory(tmp_path, "own") as run:
        run.write_episodes("eval", [Episode("a#0", "a", "own", turns, StopReason.USER_STOP, verdict=Verdict(1.0))])
        (run.path / FILE).write_text("domain: own\nwrites: [put]\nauth_tools: [log_in]\nconsent: false\n")
    page = _only_episode(tmp_path, run)
    assert "write before authentication" in page.shown
    assert "write without consent" not in page.shown
    (run.path / FILE).write_text("auth_tools: log_in\n")
    broken = _only_episode(tmp_path, run)
    assert "write without consent" in broken.shown, "as of a domain of which nothing is known"
