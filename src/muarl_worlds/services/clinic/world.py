"""A made world of the clinic: doctors with their free times, patients, appointments, prescriptions, test results."""

from __future__ import annotations

from typing import Any

from muarl.domains.kit.people import Maker, shift
from muarl_worlds.services.clinic import catalogue as cat
from muarl_worlds.services.clinic.tools import TODAY

HORIZON = 30
"""How many days ahead doctors give appointments."""
UNITS = {"cholesterol": "mg/dl", "vitamin D": "ng/ml", "ferritin": "ng/ml", "glucose": "mg/dl", "thyroid": "mU/l",
         "potassium": "mmol/l"}  # fmt: skip


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """The tables of one world."""
    names = ("patients", "doctors", "appointments", "prescriptions", "results", "waiting")
    tables: dict[str, dict[str, Any]] = {name: {} for name in names}
    for specialty, doctors in cat.DOCTORS.items():
        for name in doctors[: 1 if make.tiny else None]:
            doctor = _doctor(make, name, specialty)
            tables["doctors"][doctor["doctor_id"]] = doctor
    for _ in range(make.people):
        patient: dict[str, Any] = {
            "patient_id": make.id("patient", "PT-", 5),
            "name": make.name(),
            "date_of_birth": make.birthdate(),
            "phone": make.phone(),
            "referrals": [s for s in cat.SPECIALISTS if make.chance(0.5)],
        }
        tables["patients"][patient["patient_id"]] = patient
        _appointments(make, patient["patient_id"], tables)
        _records(make, patient["patient_id"], tables)
    return tables


def _doctor(make: Maker, name: str, specialty: str) -> dict[str, Any]:
    times = {}
    for n in range(1, HORIZON + 15):
        day = shift(TODAY, n)
        if make.chance(0.75):
            times[day] = sorted(make.rng.sample(cat.TIMES, make.rng.randint(2, 3 if make.tiny else 5)))
    return {
        "doctor_id": make.id("doctor", "DR-", 3),
        "name": name,
        "specialty": specialty,
        "referral": specialty in cat.SPECIALISTS,
        "waiting_list": make.chance(0.7),
        "times": times,
    }


def _appointments(make: Maker, patient_id: str, tables: dict[str, dict[str, Any]]) -> None:
    rng = make.rng
    for doctor in rng.sample(list(tables["doctors"].values()), rng.randint(2, 3)):
        status = rng.choice(("booked",) * 6 + ("completed", "missed", "cancelled"))
        day = make.date(TODAY, 1, HORIZON) if status in ("booked", "cancelled") else make.date(TODAY, -60, -2)
        appointment = {
            "appointment_id": make.id("appointment", "V-", 5),
            "patient_id": patient_id,
            "doctor_id": doctor["doctor_id"],
            "doctor": doctor["name"],
            "specialty": doctor["specialty"],
            "kind": "procedure" if make.chance(0.15) else "visit",
            "date": day,
            "time": rng.choice(cat.TIMES),
            "room": f"room {int(doctor['doctor_id'][-2:]) % 30 + 1}",
            "status": status,
        }
        tables["appointments"][appointment["appointment_id"]] = appointment


def _records(make: Maker, patient_id: str, tables: dict[str, dict[str, Any]]) -> None:
    rng = make.rng
    for drug in rng.sample(list(cat.DRUGS), rng.randint(1, 3)):
        prescription: dict[str, Any] = {
            "prescription_id": make.id("prescription", "RX-", 5),
            "patient_id": patient_id,
            "drug": drug,
            "controlled": cat.DRUGS[drug],
            "refills_left": rng.choice((0, 1, 2, 3)),
            "days_since_issued": rng.choice((5, 12, 24, 26, 28, 29, 31, 35, 40)),
            "pharmacy": rng.choice(cat.PHARMACIES),
        }
        tables["prescriptions"][prescription["prescription_id"]] = prescription
    for test in rng.sample(cat.TESTS, rng.randint(1, 2)):
        result: dict[str, Any] = {
            "result_id": make.id("result", "L-", 5),
            "patient_id": patient_id,
            "test": test,
            "date": make.date(TODAY, -20, -1),
            "reviewed": make.chance(0.7),
            "value": f"{rng.randrange(20, 190)} {UNITS[test]}",
        }
        tables["results"][result["result_id"]] = result
