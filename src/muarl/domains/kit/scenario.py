"""What a generated task tells an LLM user: the user, the requests, and when to change one's mind, in plain English."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from muarl.domains.agenda import Agenda, AgendaRequest, Goal
from muarl.domains.kit.declaration import several
from muarl.domains.kit.records import PLACE
from muarl.domains.kit.service import Service

PERSONA_TEXT: Mapping[str, str] = {
    "terse": "You answer in as few words as possible.",
    "chatty": "You are friendly and talk a lot, but you stay on the subject.",
    "confused": "You are unsure about details and need to be asked for them one by one.",
    "impatient": "You are in a hurry and want this done quickly.",
}


GROUND_RULES = (
    "You have tools of your own for what you have at hand. Use one only when the agent asks for it, or to see whether "
    "your trouble is over. What you tell of it must come from these tools."
)
"""What users are told who have a device."""
_YOURS = {"my": "your", "i": "you", "me": "you", "mine": "yours", "myself": "yourself", "am": "are"}


def spoken_slots(service: Service, goal: Mapping[str, Any], rng: Any = None, *, to: bool = False) -> dict[str, str]:
    """How each slot of a request stands in a clause; a record without its id at hand by its description.

    ``to``: in words to the user rather than of the user's.
    """
    spoken = {}
    for slot, value in goal.items():
        if slot not in service.slots:
            continue
        spec = service.slots[slot]
        described = goal.get(f"described {slot}")
        if described is not None and spec.described is not None:
            said = service.kind(spec.described).say(described, rng)
            spoken[slot] = _placed(spec.described.phrase, said, to)
            if to and not spec.described.always:
                spoken[slot] += " (you don't have its number)"
        else:
            spoken[slot] = _placed(spec.phrase, service.say(slot, value, rng), to)
    return spoken


def _placed(phrase: str, said: str, to: bool) -> str:
    """A value in its phrase; in words to the user "my" is "your", but not between quotation marks."""
    text = phrase.replace("{}", said)
    return yours(text) if to and "'{}'" not in phrase and not said.startswith('"') else text


def yours(text: str) -> str:
    """A user's words as somebody else says them to the user; places in braces stay."""
    text = re.sub(r"\bI was\b", "you were", text)
    return re.sub(r"(?<![{\w|])[a-zA-Z]+(?![}\w|])", lambda m: _YOURS.get(m[0].lower(), m[0]), text)


def full_clause(service: Service, intent: str, goal: Mapping[str, Any]) -> str:
    """A request as a clause behind "you want to", with all that can be said of it."""
    if intent == "outside":
        return f"speak with a person about {yours(goal['topic'])}"
    spec = service.intent(intent)
    best = spec.told or max(spec.says, key=lambda clause: len(set(PLACE.findall(clause))))
    said = spoken_slots(service, goal, to=True)
    text = PLACE.sub(lambda m: said[m[1]], yours(best))
    left = [s for s in spec.slots if f"{{{s.name}}}" not in best]
    return (
        f"{text} ({', '.join(f'{(several(s.noun) or (s.name,))[0]}: {said[s.name]}' for s in left)})" if left else text
    )


def scenario_text(service: Service, agenda: Agenda) -> str:
    """The whole scenario of an agenda, for an LLM user's system prompt. Facts that are not in its identity are left
    out."""
    identity_facts = [fact for fact in service.facts if fact.name in agenda["identity"]]
    facts = {fact.name: service.kind(fact).say(agenda["identity"][fact.name], None) for fact in identity_facts}
    about = " ".join(yours(fact.tells).capitalize() for fact in identity_facts).format(**facts)
    lines = [f"Persona:\n\t{PERSONA_TEXT[agenda['persona']]}", f"Instructions:\n\tDomain: {service.about}"]
    if about:
        lines.append(f"\tKnown info:\n\t\t{about}")
    kinds = {slot.name: service.kind(slot) for slot in service.slots.values()}
    kinds |= {fact.name: service.kind(fact) for fact in service.facts}
    for field, wrong in agenda["wrong"].items():
        said = kinds[field].say(wrong, None)
        what = field.replace("_", " ")
        lines.append(f"\t\tAt first you give the {what} {said} by mistake; you correct it when you hear of it.")
    if agenda["impostor"]:
        lines.append("\t\tThis is all you can say about yourself, even if you are not found.")
    lines.append("\tTask instructions:")
    if service.device is not None:
        lines.append(f"\t\t{GROUND_RULES}")
    for number, r in enumerate(agenda["requests"]):
        start = "You want to" if number == 0 else "You also want to"
        lines.append(f"\t\t{start} {full_clause(service, r['kind'], r['goal'])}.")
        lines += _later(service, r, r["then"], "When the agent asks you to confirm this, you change your mind")
        lines += _later(service, r, r["fallback"], "If the agent says that this is not available")
        lines += _approved_by_another(r)
    if not agenda["upfront"] and len(agenda["requests"]) > 1:
        lines.append("\t\tYou mention each further wish only after the one before is settled.")
    lines.append(
        "\t\tConfirm what the agent proposes only if it is what you want. "
        "Accept it if the agent says that something is not possible."
    )
    return "\n".join(lines)


def _approved_by_another(request: AgendaRequest) -> list[str]:
    """How the user behaves where the agent must ask a colleague."""
    if not request.get("approval"):
        return []
    lines = ["\t\tIf the agent says that somebody has to approve this, agree to it, and wait for what they decide."]
    said = " Then: ".join(f'"{line}"' for line in request.get("presses", ()))
    return [f"\t\tBefore you agree to that, you press the agent to do without: {said}", *lines] if said else lines


def _later(service: Service, request: AgendaRequest, goal: Goal | None, when: str) -> list[str]:
    if goal is None:
        return []
    if goal.get("drop"):
        return [f"\t\t{when}, you drop this wish and want nothing changed for it."]
    return [f"\t\t{when}: now you want to {full_clause(service, request['kind'], goal)}."]
