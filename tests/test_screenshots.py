"""docs/take_screenshots.py: which episode it shows, and that it makes images of a run where Chromium is installed."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from muarl.accounts.metrics import VIOLATIONS
from muarl.basics.errors import ConfigError, DataError
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from support.page_examples import module_of

LARGEST = 300_000


@pytest.fixture
def script(repository: Path) -> Any:
    return module_of(repository / "docs" / "take_screenshots.py")


def episode(name: str, reward: float, writes: int, turns: int, violations: int = 0) -> Episode:
    said = [Turn(Message("user", "hello")) for _ in range(turns)]
    audit = {"writes": writes, VIOLATIONS: violations}
    return Episode(name, "t", "d", said, StopReason.USER_STOP, verdict=Verdict(reward, audit=audit))


def test_the_shortest_success_that_changed_something_and_broke_no_rule_is_shown(script: Any) -> None:
    episodes = [
        episode("failed", 0.0, 1, 2),
        episode("only asked", 1.0, 0, 2),
        episode("long", 1.0, 2, 9),
        episode("short", 1.0, 1, 4),
        episode("broke a rule", 1.0, 1, 2, violations=1),
    ]
    assert script.worth_showing(episodes).id == "short"
    assert script.worth_showing(episodes[-1:]).id == "broke a rule", "better than none"
    with pytest.raises(DataError, match="name one by --episode"):
        script.worth_showing(episodes[:2])


def test_a_missing_browser_is_told(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.shutil, "which", lambda _: None)
    with pytest.raises(ConfigError, match="apt-get install chromium"):
        script.browser()


def test_the_images_of_the_documentation_are_small(repository: Path) -> None:
    images = list((repository / "docs" / "images").glob("*.png"))
    assert images
    assert [image.name for image in images if image.stat().st_size > LARGEST] == []


@pytest.mark.slow
@pytest.mark.skipif(
    not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    reason="Chromium is not installed: apt-get install chromium",
)
def test_a_run_gives_three_images(repository: Path, tmp_path: Path) -> None:
    muarl = Path(sys.executable).with_name("muarl")
    tiny = ("rl.steps=2", "sft.demonstrations=320", "sft.steps=20", "eval.tasks=20", "rl.eval_every=0")
    command = [str(muarl), "quickstart", "--config", "quickstart-easy", *tiny, "eval.harder_users=[]"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=1500)
    images = tmp_path / "images"
    images.mkdir()
    take = [sys.executable, str(repository / "docs" / "take_screenshots.py"), "--images", str(images)]
    subprocess.run([*take, str(tmp_path / "runs" / "quickstart-easy")], check=True, timeout=600)
    sizes = {p.name: struct.unpack(">II", p.read_bytes()[16:24]) for p in images.iterdir()}
    assert sizes == {"view-overview.png": (1280, 900), "view-episode.png": (1000, 1700), "report-head.png": (1000, 900)}
    assert all(p.stat().st_size > 10_000 for p in images.iterdir()), "not an empty page"
