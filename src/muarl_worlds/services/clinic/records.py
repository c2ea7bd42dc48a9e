"""What the tools of the clinic answer, field by field."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from muarl.domains.schema import Date, Id, Time, TypedDict, record

Specialty = Literal["general practice", "dermatology", "cardiology", "physiotherapy", "eye care"]
Pharmacy = Literal["Bridge Pharmacy", "Old Town Pharmacy", "Station Pharmacy", "Lakeview Pharmacy"]
PatientId = Annotated[str, Id("PT-", 5)]
DoctorId = Annotated[str, Id("DR-", 3)]
AppointmentId = Annotated[str, Id("V-", 5)]
PrescriptionId = Annotated[str, Id("RX-", 5)]
Days = Annotated[int, Field(ge=0)]


@record("patient_id")
class Patient(TypedDict):
    """``referrals``: the specialties to which the patient has been referred."""

    patient_id: PatientId
    name: str
    date_of_birth: Date
    phone: str
    referrals: list[Specialty]


@record("appointment_id")
class Appointment(TypedDict):
    """``kind``: a procedure is a small operation. ``room``: where it takes place."""

    appointment_id: AppointmentId
    patient_id: PatientId
    doctor_id: DoctorId
    doctor: str
    specialty: Specialty
    kind: Literal["visit", "procedure"]
    date: Date
    time: Time
    room: str
    status: Literal["booked", "completed", "missed", "cancelled"]


@record()
class Appointments(TypedDict):
    appointments: list[Appointment]


@record("doctor_id")
class Doctor(TypedDict):
    """``referral``: whether patients need one. ``waiting_list``: whether the doctor keeps one."""

    doctor_id: DoctorId
    name: str
    specialty: Specialty
    referral: bool
    waiting_list: bool


@record()
class Doctors(TypedDict):
    doctors: list[Doctor]


@record()
class FreeTimes(TypedDict):
    """``next_days``: the next days on which the doctor has time, if there is none on that day."""

    doctor_id: DoctorId
    date: Date
    times: list[Time]
    next_days: list[Date]


@record("prescription_id")
class Prescription(TypedDict):
    """``days_since_issued``: since it was last given out. ``pharmacy``: where it was last sent."""

    prescription_id: PrescriptionId
    patient_id: PatientId
    drug: str
    controlled: bool
    refills_left: Annotated[int, Field(ge=0)]
    days_since_issued: Days
    pharmacy: Pharmacy


@record()
class Prescriptions(TypedDict):
    prescriptions: list[Prescription]


@record("result_id")
class TestResult(TypedDict):
    """``reviewed``: whether a doctor has looked at it. ``value``: with its unit."""

    result_id: Annotated[str, Id("L-", 5)]
    patient_id: PatientId
    test: str
    date: Date
    reviewed: bool
    value: str


@record()
class TestResults(TypedDict):
    results: list[TestResult]


@record()
class Waiting(TypedDict):
    """A place on a doctor's waiting list."""

    patient_id: PatientId
    doctor_id: DoctorId
    doctor: str
    since: Date
