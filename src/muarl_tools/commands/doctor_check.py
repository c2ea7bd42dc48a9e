"""One line of the doctor's report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One line of the doctor's report. ``problem`` stops muarl from working; ``note`` is worth knowing.

    ``data`` holds the same facts for programs: sizes in bytes, speeds in floating-point operations a second.
    """

    name: str
    status: Status
    says: str
    remedy: str = ""
    data: dict[str, Any] = field(default_factory=dict)
