"""The strict score: what BFCL's verdict lets pass.

A run is right in the strict sense if BFCL calls it valid and, beside that, the turns that cannot be answered (without
ground truth) left the state as it was, and the model was not cut after too many steps: BFCL notices that only if turns
are missing, so not in the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

from muarl_worlds.bfcl.official.checker import CheckResult

TOUCHED = "strict:unanswerable_turn_changed_state"
CUT = "strict:force_terminated"


@dataclass(frozen=True, slots=True)
class Strict:
    """The strict verdict. ``error_type``: BFCL's where it finds fault, else one of ours; None if valid."""

    valid: bool
    error_type: str | None = None


def strict(judged: CheckResult, *, cut: bool = False) -> Strict:
    """The strict verdict from BFCL's. ``cut``: a limit ended the run."""
    if not judged.valid:
        return Strict(False, judged.error_type)
    if cut:
        return Strict(False, CUT)
    return Strict(False, TOUCHED) if judged.touched else Strict(True)
