"""The wheel: small, whole, and enough for the quickstart in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

BOUND = 16e6
"""Bytes that the wheel must stay below. Most of it are four base checkpoints: about 11 MB."""
TINY = ("rl.steps=2", "sft.demonstrations=160", "sft.steps=10", "eval.tasks=20", "rl.eval_every=0")


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make wheel` builds it, which asks the package index for hatchling."""
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(repository),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip("no package index can be reached, to fetch hatchling from")
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("muarl-*.whl")
    return built


@pytest.mark.slow
def test_its_size_is_bounded_and_is_what_the_page_says(wheel: Path, repository: Path) -> None:
    size = wheel.stat().st_size
    assert size < BOUND
    page = (repository / "docs" / "installation.md").read_text(encoding="utf-8")
    stated = re.search(r"muarl-\*\.whl` \((\d+) MB", page)
    assert stated is not None
    assert float(stated[1]) == pytest.approx(size / 1e6, abs=1.0)


@pytest.mark.slow
def test_the_quickstart_runs_from_it_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    environment, work = tmp_path / "venv", tmp_path / "work"
    work.mkdir()
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    own = next(environment.glob("lib/python*/site-packages"))
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, str(wheel)], check=True)
    # torch and the others come from the environment that runs the tests; a .pth there, as of an editable muarl, is not
    # read.
    seen = [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    (own / "of_the_tests.pth").write_text("\n".join(seen) + "\n")
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    where = [str(python), "-c", "import muarl; print(muarl.__file__)"]
    found = subprocess.run(where, cwd=work, env=clean, capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()).is_relative_to(own)
    command = [str(environment / "bin" / "muarl"), "quickstart", *TINY]
    done = subprocess.run(command, cwd=work, env=clean, capture_output=True, text=True, check=False, timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    run = work / "runs" / "quickstart"
    assert "After reinforcement learning" in done.stdout + done.stderr
    assert (run / "report.html").is_file()
    assert (run / "summary.json").is_file()
