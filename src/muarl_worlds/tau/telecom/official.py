"""An agenda for a benchmark's telecom task, read from what its user is told: the scenario, never the hidden state."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muarl.domains.agenda import Agenda, AgendaRequest
from muarl.domains.tasks import Task
from muarl_worlds.tau.telecom.troubles import HOME, NOTHING

_PROBLEMS: Mapping[str, str] = {
    "picture_messages": r"unable to send MMS",
    "mobile_data": r"mobile data is not working|excellent internet speed",
    "no_service": r"No Service",
}
_PERSONAS: Mapping[str, str] = {"None": "terse", "Easy": "chatty", "Hard": "confused"}


def official_agenda(task: Task) -> Agenda | None:
    """The agenda that plays an official telecom task, in the form of generated ones; None if it is no such task.

    The user pays bills, as these scenarios allow, and refuels as much data as they say.
    """
    text = task.scenario
    who = re.search(r"You are ([^\n]+?) with phone number ([\d-]+)\.", text)
    problem = next((kind for kind, pattern in _PROBLEMS.items() if re.search(pattern, text)), None)
    if who is None or problem is None:
        return None
    place = re.search(r"currently abroad in ([\w ]+)\.", text)
    amount = re.search(r"willing to refuel ([\d.]+) GB", text)
    about = {"place": place[1] if place else HOME, "amount": str(float(amount[1])) if amount else NOTHING}
    goal = {"pays": "yes"} if problem == "no_service" else about
    request: AgendaRequest = {
        "kind": problem, "goal": goal, "then": None, "fallback": None, "unknown": [], "intent": problem, "answer": None,
    }  # fmt: skip
    return {
        "persona": _PERSONAS.get(str(task.tags.get("persona")), "terse"),
        "user": who[1],
        "identity": {"phone_number": who[2]},
        "wrong": {},
        "impostor": False,
        "requests": [request],
        "upfront": True,
        "reminds": True,
    }
