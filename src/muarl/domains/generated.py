"""Tasks made from seeds, so that training needs no benchmark's: their splits, and what makes them and their experts."""

from __future__ import annotations

from typing import Protocol

from muarl.domains.error_profile import ErrorProfile, Expert

SPLITS = ("train", "validation", "test")


class MakeExpert(Protocol):
    """A scripted expert for one conversation."""

    def __call__(self, *, seed: int, error_profile: ErrorProfile) -> Expert: ...
