"""Wheels from wherever pip gets them here, as files: nothing of them is built, installed or run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from muarl.basics.errors import DataError


def download(requirement: str, sha256: str, folder: Path, *, instead: str) -> None:
    """Get a wheel into ``folder`` through pip, with the settings and from the index that it has, and without what the
    wheel depends on; pip checks its hash. DataError if it cannot; ``instead``: the command for a wheel got otherwise.
    """
    asked = folder / f"{sha256[:12]}.txt"
    asked.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--ignore-requires-python", "--require-hashes"]
    command += ["--dest", str(folder), "--requirement", str(asked)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        problem = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    except (OSError, subprocess.TimeoutExpired) as failure:
        problem = str(failure)
    if problem:
        raise DataError(
            f"{requirement} could not be downloaded: {problem}. Where pip cannot, get the wheel in another way and use "
            f"`{instead}`"
        )
