"""What the insurer of the scenario covers: kinds of policies with their causes, documents, ways of being paid."""

from __future__ import annotations

COVERS: dict[str, tuple[str, ...]] = {
    "car": ("collision", "theft", "hail", "broken windscreen"),
    "home": ("burglary", "water damage", "fire", "storm"),
    "travel": ("lost luggage", "cancelled trip", "medical emergency"),
    "pet": ("surgery", "poisoning"),
}
"""What each kind of policy can cover; a policy covers some of it."""
DOCUMENTS = ("police report", "repair estimate", "photos", "receipts", "medical report")
METHODS = ("bank transfer", "check", "prepaid card")
DEDUCTIBLES = (250, 500, 750, 1000)
TIMES = ("08:30", "10:00", "11:30", "13:00", "14:30", "16:00")
VOCABULARY: dict[str, tuple[str, ...]] = {}
