"""The wheel of muarl that a published folder carries, since muarl is on no package index yet."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

from muarl.basics.errors import ConfigError, DataError
from muarl.basics.version import __version__

REMEDY = "build one in a checkout of muarl (python -m pip wheel --no-deps .) and name it with --wheel"
DEADLINE = 600.0
"""Seconds that building a wheel may take."""


def find_wheel(named: Path | None, folder: Path) -> Path:
    """The wheel of this version of muarl: the one that was ``named``, else the one that muarl was installed from, else
    one that is built into ``folder`` from the checkout that it was installed from.

    ConfigError for a file that is no wheel of this version, and where there is none; DataError if it cannot be built.
    """
    if named is not None:
        return _checked(named.expanduser(), "--wheel")
    source = _installed_from()
    if source is not None and source.suffix == ".whl" and source.is_file():
        return _checked(source, "muarl was installed from it")
    if source is not None and (source / "pyproject.toml").is_file():
        return _checked(_built(source, folder), "it was just built")
    raise ConfigError(f"--wheel: there is no wheel of muarl to copy into the folder: {REMEDY}")


def _installed_from() -> Path | None:
    """The file or folder that pip installed muarl from; None if it came from elsewhere."""
    text = metadata.distribution("muarl").read_text("direct_url.json")
    url = urlparse(str(json.loads(text).get("url", ""))) if text else None
    return Path(unquote(url.path)) if url is not None and url.scheme == "file" else None


def _checked(wheel: Path, where: str) -> Path:
    """The wheel, if it is one of this version of muarl."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            name = next((n for n in archive.namelist() if n.endswith(".dist-info/METADATA")), None)
            head = HeaderParser().parsestr("" if name is None else archive.read(name).decode("utf-8", "replace"))
    except (OSError, zipfile.BadZipFile) as problem:
        raise ConfigError(f"{where}: {wheel} cannot be read as a wheel ({problem}): {REMEDY}") from None
    if (head["Name"], head["Version"]) != ("muarl", __version__) or wheel.suffix != ".whl":
        raise ConfigError(f"{where}: {wheel} is not a wheel of muarl {__version__}: {REMEDY}")
    return wheel


def _built(source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--wheel-dir", str(folder), str(source)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
        problem = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    except (OSError, subprocess.TimeoutExpired) as failure:
        problem = str(failure)
    wheel = next(folder.glob("muarl-*.whl"), None)
    if problem or wheel is None:
        raise DataError(f"a wheel of muarl could not be built from {source}: {problem or 'there is none'}. {REMEDY}")
    return wheel
