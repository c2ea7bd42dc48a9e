"""Which releases of ``transformers`` each path works with. Light: asks what is installed, and imports nothing."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

GENERIC_NEEDS = "5.17"
"""The oldest release with which the generic path passes its tests: before, classes kept some families' recurrent state
in other ways, and described masks otherwise. The own path needs no more than pyproject.toml asks for."""


def too_old_for_generic() -> str:
    """Why the installed transformers cannot run the generic path, and what to do; empty if it can, or if there is
    none here: others will run it."""
    try:
        here = version("transformers")
    except PackageNotFoundError:
        return ""
    if _numbers(here) >= _numbers(GENERIC_NEEDS):
        return ""
    return (
        f"models of this kind are computed by transformers, of release {GENERIC_NEEDS} or later, and {here} is "
        f"installed: pip install 'transformers>={GENERIC_NEEDS}'"
    )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release)[:2])
