"""The tools of a clinic's front desk, on a small database of patients, doctors, appointments and prescriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.base import Domain
from muarl.domains.kit.people import made_id, shift
from muarl.domains.tooling import tool
from muarl_worlds.services.clinic.records import (
    Appointment,
    Appointments,
    Doctors,
    FreeTimes,
    Patient,
    Pharmacy,
    Prescription,
    Prescriptions,
    Specialty,
    TestResults,
    Waiting,
)

TODAY = "2026-03-14"


class Clinic(Domain):
    """A clinic's front desk."""

    name: ClassVar[str] = "clinic"
    policy: ClassVar[Path | str] = Path("policy.md")

    def _one(self, table: str, key: str) -> Any:
        """A record to change. ValueError if there is none."""
        if key not in self.db[table]:
            raise ValueError(f"{key} not found")
        return self.db[table][key]

    def _own(self, table: str, patient_id: str) -> list[Any]:
        """All records of a patient's in a table."""
        if patient_id not in self.db.patients:
            raise ValueError(f"patient {patient_id} not found")
        return [r for _, r in self.db[table].scan() if r["patient_id"] == patient_id]

    def _doctor(self, doctor_id: str) -> Any:
        if doctor_id not in self.db.doctors:
            raise ValueError(f"doctor {doctor_id} not found")
        return self.db.doctors.peek(doctor_id)

    def _free(self, doctor_id: str, date: str) -> list[str]:
        """The times that nobody has taken yet."""
        offered = self._doctor(doctor_id)["times"].get(date, ())
        taken = {
            a["time"]
            for _, a in self.db.appointments.scan()
            if a["doctor_id"] == doctor_id and a["date"] == date and a["status"] == "booked"
        }
        return [t for t in offered if t not in taken]

    def _take(self, doctor_id: str, date: str, time: str) -> None:
        if date <= TODAY:
            raise ValueError("appointments can be made from tomorrow on")
        if time not in self._free(doctor_id, date):
            raise ValueError(f"{doctor_id} has no time on {date} at {time}")

    @tool
    def identify_patient(self, name: str, date_of_birth: str) -> Patient:
        """Find the patient by full name and date of birth.

        name: first and last name, such as 'Ada Lind'
        date_of_birth: such as '1984-05-17'
        """
        for _, patient in self.db.patients.scan():
            told = (name.strip().lower(), date_of_birth.strip())
            if told == (patient["name"].lower(), patient["date_of_birth"]):
                return patient
        raise ValueError("no patient with this name and date of birth")

    @tool
    def list_appointments(self, patient_id: str) -> Appointments:
        """All appointments of the patient, past ones included.

        patient_id: the patient, such as 'PT-12345'
        """
        return {"appointments": sorted(self._own("appointments", patient_id), key=lambda a: (a["date"], a["time"]))}

    @tool
    def get_appointment(self, appointment_id: str) -> Appointment:
        """All details of an appointment.

        appointment_id: the appointment, such as 'V-12345'
        """
        if appointment_id not in self.db.appointments:
            raise ValueError(f"appointment {appointment_id} not found")
        return self.db.appointments.peek(appointment_id)

    @tool
    def find_doctors(self, name: str | None = None, specialty: Specialty | None = None) -> Doctors:
        """The clinic's doctors by name or specialty; all of them if neither is given.

        name: a doctor's name or a part of it
        specialty: the specialty
        """
        found: list[Any] = []
        for _, d in self.db.doctors.scan():
            named = name is None or name.lower() in d["name"].lower()
            if named and (specialty is None or specialty == d["specialty"]):
                found.append({k: v for k, v in d.items() if k != "times"})
        return {"doctors": found}

    @tool
    def list_free_times(self, doctor_id: str, date: str) -> FreeTimes:
        """When a doctor has time on a day.

        doctor_id: the doctor, such as 'DR-123'
        date: the day, such as '2026-03-20'
        """
        times = self._free(doctor_id, date)
        days = [] if times else [d for d in (shift(date, n) for n in range(1, 15)) if self._free(doctor_id, d)]
        return {"doctor_id": doctor_id, "date": date, "times": times, "next_days": days[:3]}

    @tool(writes=True)
    def book_appointment(self, patient_id: str, doctor_id: str, date: str, time: str) -> Appointment:
        """Book a visit.

        patient_id: the patient
        doctor_id: the doctor
        date: the day
        time: one of the doctor's free times, such as '09:30'
        """
        self._own("appointments", patient_id)
        self._take(doctor_id, date, time)
        doctor = self._doctor(doctor_id)
        appointment: Any = {
            "appointment_id": made_id("V-", 5, patient_id, doctor_id, date, time),
            "patient_id": patient_id,
            "doctor_id": doctor_id,
            "doctor": doctor["name"],
            "specialty": doctor["specialty"],
            "kind": "visit",
            "date": date,
            "time": time,
            "room": f"room {int(doctor_id[-2:]) % 30 + 1}",
            "status": "booked",
        }
        self.db.appointments[appointment["appointment_id"]] = appointment
        return appointment

    @tool(writes=True)
    def reschedule_appointment(self, appointment_id: str, date: str, time: str) -> Appointment:
        """Put an appointment on another day or time with the same doctor.

        appointment_id: the appointment
        date: the new day
        time: one of the doctor's free times on it
        """
        appointment = self._one("appointments", appointment_id)
        if appointment["status"] != "booked":
            raise ValueError(f"appointment {appointment_id} is {appointment['status']}")
        self._take(appointment["doctor_id"], date, time)
        appointment |= {"date": date, "time": time}
        return appointment

    @tool(writes=True)
    def cancel_appointment(self, appointment_id: str) -> Appointment:
        """Cancel an appointment.

        appointment_id: the appointment
        """
        appointment = self._one("appointments", appointment_id)
        if appointment["status"] != "booked":
            raise ValueError(f"appointment {appointment_id} is {appointment['status']}")
        appointment["status"] = "cancelled"
        return appointment

    @tool
    def list_prescriptions(self, patient_id: str) -> Prescriptions:
        """The patient's repeat prescriptions.

        patient_id: the patient
        """
        return {"prescriptions": self._own("prescriptions", patient_id)}

    @tool(writes=True)
    def renew_prescription(self, prescription_id: str, pharmacy: Pharmacy) -> Prescription:
        """Use up one refill of a prescription and send it to a pharmacy.

        prescription_id: the prescription, such as 'RX-12345'
        pharmacy: where it can be collected
        """
        prescription = self._one("prescriptions", prescription_id)
        if prescription["refills_left"] < 1:
            raise ValueError(f"prescription {prescription_id} has no refills left")
        refills = prescription["refills_left"] - 1
        prescription |= {"refills_left": refills, "days_since_issued": 0, "pharmacy": pharmacy}
        return prescription

    @tool
    def list_test_results(self, patient_id: str) -> TestResults:
        """The patient's test results.

        patient_id: the patient
        """
        return {"results": self._own("results", patient_id)}

    @tool(writes=True)
    def update_phone(self, patient_id: str, phone: str) -> Patient:
        """Change the telephone number under which the patient can be reached.

        patient_id: the patient
        phone: the new number, such as '415-555-0192'
        """
        patient = self._one("patients", patient_id)
        patient["phone"] = phone
        return patient

    @tool(writes=True)
    def add_to_waiting_list(self, patient_id: str, doctor_id: str) -> Waiting:
        """Put the patient on a doctor's waiting list, for an earlier appointment if one becomes free.

        patient_id: the patient
        doctor_id: the doctor
        """
        self._own("appointments", patient_id)
        doctor = self._doctor(doctor_id)
        key = f"{patient_id} {doctor_id}"
        if key in self.db.waiting:
            raise ValueError(f"{patient_id} is on the waiting list of {doctor_id} already")
        place: Any = {"patient_id": patient_id, "doctor_id": doctor_id, "doctor": doctor["name"], "since": TODAY}
        self.db.waiting[key] = place
        return place

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the patient over to a nurse.

        summary: what it is about, in one sentence
        """
        return "Transfer successful"
