"""Folders of this machine that muarl keeps things in."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def home() -> Path:
    """The folder that holds all data: $MUARL_DATA, else the platform's cache folder."""
    named = os.environ.get("MUARL_DATA")
    return Path(named).expanduser() if named else cache_folder() / "data"


def cache_folder() -> Path:
    """muarl's folder in the platform's cache folder."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "muarl"
