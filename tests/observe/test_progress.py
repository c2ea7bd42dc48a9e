"""Progress: bars in a terminal, few plain lines elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from muarl.observe.progress import JobStages, Progress, clock, figure, rate_text, roughly


class Clock:
    def __init__(self) -> None:
        self.t = 0.0

    def __call__(self) -> float:
        return self.t


def plain(now: Clock) -> tuple[Progress, io.StringIO]:
    out = io.StringIO()
    return Progress(Console(file=out, width=200), every=10.0, now=now), out


def test_plain_lines_are_few_and_tell_rate_and_time_left() -> None:
    now = Clock()
    progress, out = plain(now)
    assert not progress.live
    with progress.phase("RL", total=100, unit="steps") as phase:
        for _ in range(100):
            now.t += 0.5
            phase.advance(success=0.4137)
    lines = out.getvalue().splitlines()
    assert lines[0] == "RL: 100 steps"
    assert lines[1] == "RL: 20/100 steps · 2 steps/s · 40s left · success 0.414"
    assert lines[-1] == "RL: 100/100 steps · done · 2 steps/s · in 50s · success 0.414"
    assert len(lines) <= 7


def test_a_phase_that_breaks_says_so() -> None:
    now = Clock()
    progress, out = plain(now)

    def interrupted() -> None:
        with progress.phase("Evaluation", unit="episodes") as phase:
            now.t += 4
            phase.advance(2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert out.getvalue().splitlines()[-1].startswith("Evaluation: 2 episodes · stopped · 2 s/episode")


def test_live_bars_nest_and_leave_the_terminal_whole() -> None:
    out = io.StringIO()
    progress = Progress(Console(file=out, force_terminal=True, width=120), live=True)
    with progress.phase("RL [0]", total=2) as outer:
        outer.advance(success=0.5)
        with progress.phase("Evaluation", total=1, unit="episodes") as inner:
            progress.say("a [bold] note")
            inner.advance()
        outer.advance()
    text = out.getvalue()
    assert "RL [0]" in text and "Evaluation" in text and "a [bold] note" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor is given back


def last_line(out: io.StringIO) -> str:
    return out.getvalue().splitlines()[-1]


def test_a_rate_is_true_however_the_work_comes_in() -> None:
    now = Clock()
    progress, out = plain(now)
    with progress.phase("Demonstrations", total=960, unit="conversations") as phase:
        now.t = 3.0
        for _ in range(960):  # all of them within a moment
            now.t += 1e-6
            phase.advance()
            if phase.done == 480:
                assert phase.rate == pytest.approx(160, rel=0.01)
    assert last_line(out) == "Demonstrations: 960/960 conversations · done · 320 conversations/s · in 3s"


def test_the_recent_rate_forgets_a_slow_start() -> None:
    now = Clock()
    progress, _ = plain(now)
    with progress.phase("RL", total=100) as phase:
        now.t += 100
        for _ in range(40):
            now.t += 2
            phase.advance()
        assert phase.rate == pytest.approx(0.5, rel=0.05)
    assert phase.rate == pytest.approx(40 / 180)


def test_what_was_done_before_is_in_no_rate() -> None:
    now = Clock()
    progress, out = plain(now)
    with progress.phase("RL", total=60) as phase:
        phase.resume(40)
        for _ in range(20):
            now.t += 2
            phase.advance()
        assert phase.seconds_left == 0
    assert "RL: 50/60 steps · 2 s/step · 20s left" in out.getvalue()
    assert last_line(out) == "RL: 60/60 steps · done · 2 s/step · in 40s"


STAGES = {"cold start": 100.0, "evaluation": 50.0, "RL": 300.0, "greedy": 50.0}


def test_a_planned_job_says_its_stage_and_the_time_left_for_all_of_it() -> None:
    now = Clock()
    progress, out = plain(now)
    progress.plan(STAGES)
    with progress.phase("cold start", total=100) as phase:
        now.t += 1
        assert phase.describe().endswith("stage 1 of 4"), "too early to tell"
        for _ in range(50):
            now.t += 2  # this machine takes twice as long
            phase.advance()
        assert phase.describe().endswith("stage 1 of 4, about 15 min left")  # 202 / 50 s each for 50 and 400 more
    assert out.getvalue().splitlines()[0] == "cold start: 100 steps · stage 1 of 4"
    assert "stage" not in last_line(out), "what is over has no time left"
    now.t += 99
    with progress.phase("auditing", total=3) as phase:
        phase.advance()
        assert "stage" not in phase.describe()
    with progress.phase("evaluation", total=10) as phase:
        phase.resume(10)  # it had been played before
    with progress.phase("RL", total=60) as phase:
        now.t += 303
        phase.advance(30)
        assert phase.describe().endswith("stage 3 of 4, about 7 min left")
        with progress.phase("validation", total=2) as inner:
            inner.advance()
            assert "stage" not in inner.describe()


def test_stages_without_a_model_tell_nothing_of_the_pace() -> None:
    """With a model a hundred times as slow as planned the time left is a hundred times as long, from the start."""
    now = Clock()
    progress, _ = plain(now)
    stages = {"do nothing": 1.0, "demonstrations": 10.0, "cold start": 20.0, "RL": 30.0}
    progress.plan(stages, without_model=["do nothing", "demonstrations"])
    for name in ("do nothing", "demonstrations"):
        with progress.phase(name, total=10) as phase:
            now.t += 0.1
            phase.advance(9)
            assert phase.describe().endswith("of 4")
            phase.advance()
    with progress.phase("cold start", total=20) as phase:
        now.t += 100
        phase.advance()
        assert phase.describe().endswith("stage 3 of 4, about 82 min left")  # 19 + 30 times 100 s


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3, "10 s"), (44, "40 s"), (95, "2 min"), (540, "9 min"), (7_800, "2 h 10 min"), (7_190, "2 h")],
)
def test_estimates_are_told_roughly(seconds: float, text: str) -> None:
    assert roughly(seconds) == text


def test_words() -> None:
    assert [clock(s) for s in (0, 8.4, 65, 7384)] == ["0s", "8s", "1:05", "2:03:04"]
    assert [rate_text(r, "episodes") for r in (0, 0.25, 12.34)] == ["", "4 s/episode", "12.3 episodes/s"]
    assert [rate_text(r, "MiB") for r in (3990, 1 / 3990)] == ["3,990 MiB/s", "3,990 s/MiB"]
    assert [figure(v) for v in (0.41, 12.345, 1234.5, 3, "x")] == ["0.410", "12.3", "1,234", "3", "x"]


def test_a_job_of_which_nothing_is_known_tells_no_time() -> None:
    assert JobStages({"one": 0.0, "two": 0.0}).text("one", 60.0, 0.5, 0.5) == "stage 1 of 2"
