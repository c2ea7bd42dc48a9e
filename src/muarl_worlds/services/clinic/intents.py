"""What patients of the clinic want, how they say it, and how each request is served by the policy."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.kit.declaration import (
    Fact,
    Identity,
    RecordDescription,
    Slot,
    days,
    intent,
    names,
    one_of,
    own,
    pattern,
    rows,
)
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.service import Service
from muarl_worlds.services.clinic import catalogue as cat
from muarl_worlds.services.clinic.tools import TODAY, Clinic
from muarl_worlds.services.clinic.world import make_tables

# fmt: off
# Wordings stand side by side, and rules below each other.

DOCTORS = names(cat.VOCABULARY["doctors"])

IDENTITY = Identity(
    tool="identify_patient", table="patients", key="patient_id",
    facts=(Fact("name", "person", tells="My name is {name}."),
           Fact("date_of_birth", "birthdate", tells="I was born on {date_of_birth}.", wrong=True,
                noun=["date of birth", "born", "birthday"])),
    ask=("May I have your full name and date of birth?",
         "Could you give me your name and your date of birth, please?",
         "To open your record I need your full name and date of birth.",
         "First of all, what are your full name and date of birth?"),
    retry=("I could not find a patient with this name and date of birth. Could you check them, please?",
           "There is nobody with that name and date of birth. Would you give me both again?"),
    say=("I'm {name}, born on {date_of_birth}.", "My name is {name} and I was born on {date_of_birth}.",
         "{name}, {date_of_birth}.", "It's {name}, date of birth {date_of_birth}.",
         "This is {name}. My birthday is {date_of_birth}."),
)

VISIT = Slot(
    "visit", pattern(r"V-\d{5}"),
    ask=["Which appointment is it?", "What is the number of the appointment?",
         "Which of your appointments do you mean?"],
    phrase="appointment {}",
    say=["It's appointment {}.", "Appointment {}.", "The number is {}."],
    draw=own("appointments", "appointment_id", mark="time"),
    described=RecordDescription(
        kind=DOCTORS, match="doctor", id="appointment_id", look="list_appointments", records="appointments",
        given={"patient_id": "patient_id"},
        phrase="my appointment with {}",
        say=["I don't have the number. It's the one with {}.", "The appointment with {}.",
             "It is the one with {}, I think."],
        cue="(?:appointment|visit|one|it's|it is|that) with",
    ),
    noun=["appointment", "visit"],
)
DOCTOR = Slot(
    "doctor", DOCTORS,
    ask=["Which doctor would you like to see?", "With which doctor?", "Which doctor is it?"],
    say=["{}.", "{}, please.", "It's about {}."],
    change=["Actually, could it be {}?", "Wait, rather {}."],
    draw=rows("doctors", "name"),
)
DATE = Slot(
    "date", "date",
    ask=["On which day would you like to come?", "Which day would suit you?", "What day should it be?"],
    say=["On {}.", "{}, please.", "{} would be best."],
    change=["Actually, {} would be better.", "Sorry, I meant {}.", "Could we make it {} instead?"],
    draw=days(2, 28), noun=["day", "date"],
)
TIME = Slot(
    "time", "time",
    ask=["At what time?", "Which time would you like?", "What time would suit you?"],
    say=["At {}.", "{}, please.", "{} is fine."],
    change=["Hmm, {} is better for me.", "Actually, let's make it {}."],
    draw=one_of(
        "08:00", "08:30", "09:00", "09:30", "10:00", "10:30", "11:00", "11:30", "13:00", "13:30", "14:00", "14:30",
        "15:00", "15:30", "16:00", "16:30",
    ),
)
DRUG = Slot(
    "drug", pattern(r"RX-\d{5}"),
    ask=["Which medicine is it?", "Which prescription do you mean?", "What medicine is it for?"],
    phrase="prescription {}", say="Prescription {}.", draw=own("prescriptions", "prescription_id", mark="drug"),
    described=RecordDescription(
        kind=names(cat.VOCABULARY["drugs"]), match="drug", id="prescription_id", look="list_prescriptions",
        records="prescriptions",
        given={"patient_id": "patient_id"},
        phrase="my {}",
        say=["The {}.", "It's {}.", "My {}, please."],
        always=True,
    ),
    noun=["medicine", "medication", "prescription"],
)
PHARMACY = Slot(
    "pharmacy", names(cat.VOCABULARY["pharmacies"]),
    ask=["To which pharmacy should I send it?", "Where would you like to collect it?",
         "Which pharmacy would you like?"],
    say=["To {}.", "{}, please.", "I'll collect it at {}."],
    change=["Actually, send it to {}.", "Wait, {} is closer."],
)
PHONE = Slot(
    "phone", pattern(r"\d{3}-\d{3}-\d{4}|555-\d{4}"),
    ask=["What is the new number?", "Which number should I note?"],
    say=["It's {}.", "{}.", "The new one is {}."],
    change=["Sorry, I got that wrong, it is {}.", "No, it should be {}."],
    draw=one_of(
        "415-555-0117", "415-555-0122", "628-555-0139", "628-555-0141", "510-555-0158", "510-555-0163", "925-555-0174",
        "925-555-0186", "707-555-0190", "707-555-0105",
    ),
    noun=["number", "phone"],
)
TEST = Slot(
    "test", pattern(r"L-\d{5}"),
    ask=["Which test is it?", "Which result do you mean?"],
    phrase="result {}", say="Result {}.", draw=own("results", "result_id", mark="test"),
    described=RecordDescription(
        kind=names(cat.VOCABULARY["tests"]), match="test", id="result_id", look="list_test_results", records="results",
        given={"patient_id": "patient_id"},
        phrase="my {} test",
        say=["The {} test.", "It's the {} one.", "My {} test."],
        always=True,
    ),
    noun=["test", "result"],
)


def own_visit(it: Plan) -> None:
    """The patient's appointment."""
    it.a = it.look("get_appointment", appointment_id=it.visit)
    it.refuse_unless(it.a.patient_id == it.user.patient_id, "appointment {visit} is not yours")


@intent(
    says=["book an appointment with {doctor} on {date} at {time}", "see {doctor} on {date}",
          "make an appointment with {doctor}", "get an appointment with {doctor} on {date}", "book a visit",
          "see a doctor"],
    slots=[DOCTOR, DATE, TIME], share=1.8,
    because=["It has been bothering me for weeks.", "My old doctor has retired.", "It is only a check-up."],
    heard=r"\bbook\b|\bmake (?:a|an) (?:new )?appointment|\bsee (?:dr|a doctor)|\bget an appointment",
)
def book(it: Plan) -> None:
    it.found = it.look("find_doctors", name=it.doctor)
    it.d = it.pick(it.found.doctors, name=it.doctor) or it.unavailable(DOCTOR, [r.name for r in it.found.doctors])
    it.refuse_if(
        it.d.referral and it.d.specialty not in it.user.referrals,
        "{doctor} only sees patients with a referral to {d.specialty}, and there is none on your record",
    )
    it.free = it.look("list_free_times", doctor_id=it.d.doctor_id, date=it.date)
    it.unavailable_if(not it.free.times, DATE, it.free.next_days)
    it.slot = it.pick(it.free.times, lambda r: r == it.time) or it.unavailable(TIME, list(it.free.times))
    it.write(
        "book_appointment", patient_id=it.user.patient_id, doctor_id=it.d.doctor_id, date=it.date, time=it.time,
        propose=["book an appointment with {doctor} ({d.specialty}) on {date} at {time}",
                 "book {doctor} for you on {date} at {time}"],
        done=["You have an appointment with {doctor} on {date} at {time}, number {result.appointment_id}.",
              "Booked: {result.appointment_id}, {date} at {time}, {result.room}."],
    )


@intent(
    says=["reschedule {visit} to {date} at {time}", "move {visit} to {date} at {time}", "postpone {visit} to {date}",
          "move {visit} to another day", "reschedule {visit}", "reschedule an appointment"],
    slots=[VISIT, DATE, TIME], share=1.7,
    because=["I have to be in court that day.", "The school called about my son.", "I mixed up my calendars."],
)
def reschedule(it: Plan) -> None:
    own_visit(it)
    it.refuse_unless(it.a.status == "booked", "appointment {visit} is {a.status}, and only booked ones can be moved")
    it.transfer_if(it.a.kind == "procedure", "The patient wants to move appointment {visit}, which is a procedure.")
    it.refuse_if(
        it.a.date < "2026-03-16",
        "appointment {visit} is on {a.date|date}, and appointments can be moved until two days before",
    )
    it.free = it.look("list_free_times", doctor_id=it.a.doctor_id, date=it.date)
    it.unavailable_if(not it.free.times, DATE, it.free.next_days)
    it.slot = it.pick(it.free.times, lambda r: r == it.time) or it.unavailable(TIME, list(it.free.times))
    it.write(
        "reschedule_appointment", appointment_id=it.visit, date=it.date, time=it.time,
        propose=["reschedule appointment {visit} with {a.doctor} to {date} at {time}",
                 "reschedule {visit}: {a.doctor} will see you on {date} at {time}"],
        done=["Appointment {visit} is now on {date} at {time}.", "Done, {a.doctor} expects you on {date} at {time}."],
    )


@intent(
    says=["cancel {visit}", "call off {visit}", "cancel {visit}, since I cannot come", "cancel an appointment"],
    slots=[VISIT], share=1.3,
    because=["I feel much better now.", "I will be out of town."],
)
def cancel(it: Plan) -> None:
    own_visit(it)
    it.refuse_unless(
        it.a.status == "booked",
        "appointment {visit} is {a.status}, and only booked ones can be cancelled",
    )
    it.transfer_if(it.a.kind == "procedure", "The patient wants to cancel appointment {visit}, which is a procedure.")
    it.refuse_if(
        it.a.date < "2026-03-16",
        "appointment {visit} is on {a.date|date}, and appointments can be cancelled until two days before",
    )
    it.write(
        "cancel_appointment", appointment_id=it.visit,
        propose=["cancel appointment {visit} with {a.doctor} on {a.date|date} at {a.time}",
                 "cancel {visit}, your visit to {a.doctor} on {a.date|date}"],
        done=["Appointment {visit} is cancelled.", "I have cancelled your appointment with {a.doctor}."],
    )


@intent(
    says=["renew {drug} and collect it at {pharmacy}", "get a refill of {drug} at {pharmacy}", "renew {drug}",
          "get more of {drug}", "renew a prescription"],
    slots=[DRUG, PHARMACY], share=1.5,
    because=["I am down to the last few.", "I nearly forgot about it."],
)
def renew(it: Plan) -> None:
    it.all = it.look("list_prescriptions", patient_id=it.user.patient_id)
    it.rx = it.pick(it.all.prescriptions, prescription_id=it.drug) or it.refuse("this prescription is not yours")
    it.refuse_if(it.rx.controlled, "{rx.drug} is a controlled medicine, which is never renewed by the front desk")
    it.refuse_if(
        it.rx.refills_left < 1,
        "there are no refills left for {rx.drug}, so that you need to see a doctor first",
    )
    it.refuse_if(
        it.rx.days_since_issued < 25,
        "{rx.drug} was given out {rx.days_since_issued} days ago, and it is renewed after 25 days at the earliest",
    )
    it.write(
        "renew_prescription", prescription_id=it.rx.prescription_id, pharmacy=it.pharmacy,
        propose=["renew {rx.drug} and send it to {pharmacy}",
                 "renew prescription {rx.prescription_id} ({rx.drug}), to be collected at {pharmacy}"],
        done=["{rx.drug} is waiting for you at {pharmacy}; you have {result.refills_left} refills left.",
              "Done, {pharmacy} has your prescription for {rx.drug}."],
    )


@intent(
    says=["get on the waiting list of {doctor}", "join the waiting list of {doctor}", "get on a waiting list"],
    slots=[DOCTOR],
    because=["I could come at any time.", "I work around the corner."],
)
def waiting_list(it: Plan) -> None:
    it.found = it.look("find_doctors", name=it.doctor)
    it.d = it.pick(it.found.doctors, name=it.doctor) or it.unavailable(DOCTOR, [r.name for r in it.found.doctors])
    it.refuse_if(not it.d.waiting_list, "{doctor} keeps no waiting list")
    it.refuse_if(
        it.d.referral and it.d.specialty not in it.user.referrals,
        "{doctor} only sees patients with a referral to {d.specialty}, and there is none on your record",
    )
    it.write(
        "add_to_waiting_list", patient_id=it.user.patient_id, doctor_id=it.d.doctor_id,
        propose=["add you to the waiting list of {doctor}",
                 "add your name to the waiting list for {doctor} ({d.specialty})"],
        done=["You are on the waiting list of {doctor}.", "Done, we will call you as soon as {doctor} has time."],
    )


@intent(
    says=["change my phone number to {phone}", "give you my new number, {phone}", "update my phone number"],
    slots=[PHONE], share=0.9,
    because=["I lost my old mobile.", "We moved."],
)
def update_phone(it: Plan) -> None:
    it.write(
        "update_phone", patient_id=it.user.patient_id, phone=it.phone,
        propose=["update your telephone number to {phone}",
                 "change the number on your record from {user.phone} to {phone}"],
        done=["Your number is now {phone}.", "Done, we will reach you under {phone}."],
    )


@intent(
    says=["know which room {visit} is in", "find out where to go for {visit}", "know where to go for an appointment"],
    slots=[VISIT], share=0.8,
    because=["The building is so confusing.", "I would not like to be late."],
)
def ask_visit(it: Plan) -> None:
    own_visit(it)
    it.answer(
        ["Appointment {visit} with {a.doctor} is in {a.room}.", "{a.doctor} sees you in {a.room} for {visit}."],
        tell="{a.room}",
    )


@intent(
    says=["know the result of {test}", "find out the result of {test}", "hear the result of a test"],
    slots=[TEST],
    because=["I have been quite nervous about it.", "The nurse said it would be there by now."],
    heard=r"\bresults?\b",
)
def ask_result(it: Plan) -> None:
    it.all = it.look("list_test_results", patient_id=it.user.patient_id)
    it.r = it.pick(it.all.results, result_id=it.test) or it.refuse("this result is not yours")
    it.refuse_if(not it.r.reviewed, "a doctor has to look at the result of your {r.test} test before it is given out")
    it.answer(
        ["The result of your {r.test} test of {r.date|date} is {r.value}.",
         "Your {r.test} test came back at {r.value}."],
        tell="{r.value}",
    )


SERVICE = Service(
    domain=Clinic, about="the front desk of a clinic", today=TODAY, identity=IDENTITY,
    intents=(book, reschedule, cancel, renew, waiting_list, update_phone, ask_visit, ask_result),
    tables=make_tables,
    outside=("pain in my chest", "what I should take against a fever", "a bill from my insurer",
             "a complaint about a doctor", "a certificate for my employer", "side effects that I have"),
    open_tools=("find_doctors", "list_free_times"),
    tiny_tools=("identify_patient", "list_appointments", "get_appointment", "find_doctors", "list_free_times",
                "book_appointment", "reschedule_appointment", "cancel_appointment", "add_to_waiting_list",
                "transfer_to_human_agents"),
    policy_compact=Path("policy_compact.md"),
)
