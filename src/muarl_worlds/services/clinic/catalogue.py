"""What the clinic of the scenario consists of: doctors by specialty, medicines, pharmacies, tests."""

from __future__ import annotations

DOCTORS: dict[str, tuple[str, ...]] = {
    "general practice": ("Dr. Achterberg", "Dr. Mensah", "Dr. Pilch", "Dr. Sandoval"),
    "dermatology": ("Dr. Rasmussen", "Dr. Okafor"),
    "cardiology": ("Dr. Lindqvist", "Dr. Barros"),
    "physiotherapy": ("Dr. Tamm", "Dr. Huang", "Dr. Marchetti"),
    "eye care": ("Dr. Dvorak", "Dr. Oyelaran"),
}
SPECIALISTS = ("dermatology", "cardiology")
"""Specialties that need a referral."""
NAMES = tuple(name for names in DOCTORS.values() for name in names)
DRUGS: dict[str, bool] = {
    "lisinopril": False, "metformin": False, "levothyroxine": False, "atorvastatin": False, "salbutamol": False,
    "omeprazole": False, "cetirizine": False, "amlodipine": False, "oxycodone": True, "lorazepam": True,
    "methylphenidate": True,
}  # fmt: skip
"""Medicines, and whether each is controlled."""
PHARMACIES = ("Bridge Pharmacy", "Old Town Pharmacy", "Station Pharmacy", "Lakeview Pharmacy")
TESTS = ("cholesterol", "vitamin D", "ferritin", "glucose", "thyroid", "potassium")
TIMES = tuple(f"{hour:02d}:{minute:02d}" for hour in (8, 9, 10, 11, 13, 14, 15, 16) for minute in (0, 30))
VOCABULARY = {"doctors": NAMES, "drugs": tuple(DRUGS), "pharmacies": PHARMACIES, "tests": TESTS}
