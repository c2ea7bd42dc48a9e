"""The pages in a real browser: nothing overflows, nothing is refused, keys work, hostile episodes do nothing."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from muarl.environments.audit_rules import RulesOfRuns
from muarl.environments.recorded_episodes import replay_recorded
from muarl.observe.rundir import RunDirectory
from muarl_tools.view.export import write_pages
from muarl_tools.view.layout import episode_at, pair_at
from muarl_tools.view.runs import Library
from support.viewing import Browser, indexed, make_run, play, serving, writing_tasks
from support.viewing_pages import found, hostile

WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"


def places(library: Library) -> list[str]:
    """One page of each kind."""
    run = library.runs[0]
    after = found(library)[0]
    other = next(e for e in found(library) if e.task == after.task and e.key != after.key)
    base = f"/runs/{run.slug}"
    return [
        "/", f"{base}/episodes", f"{base}/episodes?task=nothing", f"{base}/tasks", f"{base}/tasks?show=all",
        f"{base}/tasks/{after.task}" if "/" not in after.task else "/", episode_at(run, after.key).address,
        episode_at(run, after.key, ("by", "token")).address, pair_at(run, after.key, run, other.key).address,
    ]  # fmt: skip


def test_nothing_overflows_and_nothing_is_refused(library: Library, browser: Browser) -> None:
    with serving(library) as server:
        browser.go(server.address)
        for place in places(library):
            browser.go(f"http://127.0.0.1:{server.port}{place}")
            for width in (360, 820, 1280):
                browser.size(width, dark=width == 820)
                wide, seen = browser.ask(WIDTHS)
                assert wide <= seen, (place, width, wide, seen)
            assert browser.ask("document.querySelectorAll('h1').length") == 1
        assert browser.complaints == []
        assert all(r.startswith(f"http://127.0.0.1:{server.port}/") for r in browser.requests)


def test_hostile_episodes_do_nothing(tmp_path: Path, browser: Browser) -> None:
    library = hostile(tmp_path)
    with serving(library) as server:
        browser.go(server.address)
        for place in places(library):
            browser.go(f"http://127.0.0.1:{server.port}{place}")
            wide, seen = browser.ask(WIDTHS)
            assert wide <= seen, place
            assert (
                browser.ask("document.querySelectorAll('main script, img, [onerror], a[href^=javascript]').length") == 0
            )
        assert browser.complaints == []
        assert all(r.startswith(f"http://127.0.0.1:{server.port}/") for r in browser.requests)


def test_colours_follow_the_readers_request(library: Library, browser: Browser) -> None:
    with serving(library) as server:
        browser.go(server.address)
        light = browser.ask("getComputedStyle(document.body).backgroundColor")
        browser.size(1280, dark=True)
        dark = browser.ask("getComputedStyle(document.body).backgroundColor")
        sums = [sum(map(int, c.removeprefix("rgb(").rstrip(")").split(","))) for c in (light, dark)]
        assert sums[0] > 700 and sums[1] < 100
        # Text stands out from its ground in both.
        assert sum(map(int, browser.ask("getComputedStyle(document.body).color")[4:-1].split(","))) > 600


@pytest.mark.slow
def test_keys_lead_through_the_pages(library: Library, browser: Browser) -> None:
    with serving(library) as server:
        browser.go(server.address)
        browser.press("g")
        browser.press("e", leads=True)
        assert browser.ask("location.pathname") == "/runs/mine/episodes"
        browser.press("j")
        browser.press("j")
        assert browser.ask("[...document.querySelectorAll('tbody tr')].findIndex(r => r.matches('.chosen'))") == 1
        browser.press("k")
        row = browser.ask("document.activeElement.getAttribute('href')")
        browser.press("Enter", leads=True)
        assert browser.ask("location.pathname") == row
        browser.press("n", leads=True)
        assert browser.ask("location.pathname") not in (row, "/runs/mine/episodes")
        browser.press("p", leads=True)
        assert browser.ask("location.pathname") == row
        browser.press("u", leads=True)
        assert browser.ask("location.pathname") == "/runs/mine/episodes"
        browser.press("/")
        assert browser.ask("document.activeElement.name") == "result"
        assert browser.complaints == []


def test_the_filter_works_with_and_without_scripts(library: Library, browser: Browser) -> None:
    with serving(library) as server:
        browser.go(server.address)
        try:
            for scripts in (True, False):
                browser.call("Emulation.setScriptExecutionDisabled", value=not scripts)
                browser.go(f"http://127.0.0.1:{server.port}/runs/mine/episodes")
                browser.ask("document.querySelector('[name=result]').value = 'unscored'")
                browser.click("form.filter button")
                assert browser.ask("document.querySelector('h1').textContent") == "1 episode"
                assert ("stage=" in browser.ask("location.search")) == (not scripts)
        finally:
            browser.call("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.slow
def test_a_running_page_refreshes_itself(tmp_path: Path, browser: Browser) -> None:
    task = writing_tasks("train", 1)[0]
    with RunDirectory(tmp_path, "live") as run:
        run.log({"reward": 0.5, "episodes": 1}, phase="rl", step=0)
        library = Library([run.path], index=tmp_path, replay=replay_recorded, rules=RulesOfRuns())
        library.watch(every=0.1)
        try:
            with serving(library) as server:
                browser.go(server.address)
                assert "Saved episodes 0" in browser.ask("document.querySelector('main').innerText").replace("\n", " ")
                run.write_episodes("train-0000", [play(task, True, "0.0/x")])
                later = """new Promise((done) => { let n = 0; const look = setInterval(() => {
                  const text = document.querySelector('main').innerText.replaceAll('\\n', ' ');
                  if (text.includes('Saved episodes 1') || ++n > 300) { clearInterval(look); done(n) } }, 100) })"""
                assert browser.ask(later) < 300
                assert browser.complaints == []
        finally:
            library.close()


@pytest.mark.slow
def test_exported_pages_open_from_the_disk(finished: RunDirectory, tmp_path: Path, browser: Browser) -> None:
    other = make_run(tmp_path, "other")
    write_pages(indexed(tmp_path, finished.path, other.path), tmp_path / "pages", episodes=4)
    browser.go((tmp_path / "pages" / "index.html").as_uri())
    assert browser.ask("getComputedStyle(document.querySelector('header.app')).borderBottomWidth") == "1px"
    browser.go(next((tmp_path / "pages" / "mine" / "episodes").glob("*-token.html")).as_uri())
    assert browser.ask("getComputedStyle(document.querySelector('.tokens')).whiteSpaceCollapse") == "preserve"
    assert browser.complaints == [] and all(r.startswith("file:") for r in browser.requests)


def test_it_paints(library: Library, browser: Browser) -> None:
    with serving(library) as server:
        browser.go(server.address)
        picture = base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"])
    assert picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) > 30_000
