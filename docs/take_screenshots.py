"""Renews the screenshots of the documentation from a run of the quickstart, in headless Chromium:

muarl quickstart --config quickstart-easy
python docs/take_screenshots.py runs/quickstart-easy

Writes docs/images/view-overview.png, view-episode.png and report-head.png. The episode is the shortest of the last
evaluation that succeeded, changed the database and broke no rule, or the one that --episode names.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muarl.accounts.metrics import without_violation
from muarl.basics.errors import ConfigError, DataError, MuarlError
from muarl.environments.audit_rules import RulesOfRuns
from muarl.environments.recorded_episodes import replay_recorded
from muarl.observe.rundir import RunDirectory
from muarl.types.episode import Episode
from muarl_tools.view import queries
from muarl_tools.view.layout import episode_at
from muarl_tools.view.queries import Filter, IndexedEpisode
from muarl_tools.view.runs import Library
from muarl_tools.view.server import ViewServer

IMAGES = Path(__file__).with_name("images")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
EVALUATION = "eval-after"
LARGEST = 300_000
"""Bytes that an image may have."""
PATIENCE = 120
"""Seconds that the browser may take for one image."""


@dataclass(frozen=True, slots=True)
class Screenshot:
    """One image: of what page, in a window of what size."""

    name: str
    """Of the file."""
    address: str
    """What the browser opens."""
    width: int
    """Pixels."""
    height: int
    """Pixels; what lies below is cut off."""


def browser() -> str:
    """The command of an installed Chromium. ConfigError if there is none."""
    command = next((path for name in BROWSERS if (path := shutil.which(name)) is not None), None)
    if command is None:
        raise ConfigError("Chromium is not installed: apt-get install chromium")
    return command


def worth_showing(episodes: Sequence[Episode]) -> Episode:
    """The shortest episode that succeeded and whose agent changed something, without breaking a rule if there is one
    such. DataError if nothing succeeded so."""
    good = [e for e in episodes if e.reward == 1 and e.verdict is not None and e.verdict.audit.get("writes", 0) > 0]
    if not good:
        raise DataError(f"{EVALUATION}: no episode succeeded and changed the database; name one by --episode")
    return min(good, key=lambda e: (not without_violation(e), len(e.messages), e.id))


def after(index: sqlite3.Connection) -> list[IndexedEpisode]:
    """The last evaluation's episodes, as the viewer's index knows them."""
    wanted = Filter(stage="after")
    return queries.episodes(index, wanted, size=max(1, queries.count(index, wanted)))


def take(command: str, screenshot: Screenshot, folder: Path) -> Path:
    """Write one image into a folder. DataError if the browser writes none, or it is too large."""
    made = folder / screenshot.name
    with tempfile.TemporaryDirectory() as profile:
        flags = (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            "--disable-background-networking",
            f"--user-data-dir={profile}",
            f"--window-size={screenshot.width},{screenshot.height}",
            f"--screenshot={made}",
        )
        done = subprocess.run(
            [command, *flags, screenshot.address], capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    if not made.is_file():
        raise DataError(f"{screenshot.name}: {command} wrote no image: {done.stderr.strip()[-300:]}")
    if (size := made.stat().st_size) > LARGEST:
        raise DataError(f"{screenshot.name} has {size:,} bytes, more than {LARGEST:,}: show less of the page")
    return made


def take_all(run: Path, images: Path, episode: str | None = None) -> list[Path]:
    """Write all images of a run into a folder; those there are replaced when all new ones are made."""
    command, folder = browser(), RunDirectory.at(run)
    shown = episode or worth_showing(folder.read_episodes(EVALUATION)).id
    library = Library([run], replay=replay_recorded, rules=RulesOfRuns())
    (viewed,) = library.runs
    viewed.store.refresh()
    row = next((row for row in viewed.ask(after) if row.name == shown), None)
    if row is None:
        raise DataError(f"{EVALUATION} of {run} has no episode {shown}")
    with ViewServer(library, port=0) as server, tempfile.TemporaryDirectory(dir=images) as temporary:
        server.start()
        overview = server.address
        token = overview.partition("/?")[2]
        wanted = (
            Screenshot("view-overview.png", overview, 1280, 900),
            Screenshot(
                "view-episode.png", f"{server.where.url}{episode_at(viewed, row.key).address}?{token}", 1000, 1700
            ),
            Screenshot("report-head.png", folder.report.absolute().as_uri(), 1000, 900),
        )
        made = [take(command, one, Path(temporary)) for one in wanted]
        for image in made:
            os.replace(image, images / image.name)
    library.close()
    return [images / one.name for one in wanted]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a finished quickstart")
    parser.add_argument("--episode", help="id of the episode to show; default: the shortest good one")
    parser.add_argument("--images", type=Path, default=IMAGES, help="folder to write into")
    options = parser.parse_args()
    for image in take_all(options.run, options.images, options.episode):
        print(f"wrote {image} ({image.stat().st_size:,} bytes)")


if __name__ == "__main__":
    try:
        main()
    except MuarlError as problem:
        raise SystemExit(f"take_screenshots: {problem}") from None
