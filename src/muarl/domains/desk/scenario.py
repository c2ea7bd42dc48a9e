"""What a generated task tells an LLM user: the caller, the wishes, and when to change one's mind, in plain English."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from muarl.domains.desk.spec import PLACE, Script

PERSONA_TEXT: Mapping[str, str] = {
    "terse": "You answer in as few words as possible.",
    "chatty": "You are friendly and talk a lot, but you stay on the subject.",
    "confused": "You are unsure about details and need to be asked for them one by one.",
    "impatient": "You are in a hurry and want this done quickly.",
}


_YOURS = {"my": "your", "i": "you", "me": "you", "mine": "yours", "myself": "yourself", "am": "are"}


def spoken_slots(script: Script, wish: Mapping[str, Any], rng: Any = None, *, to: bool = False) -> dict[str, str]:
    """How each slot of a wish stands in a clause; a record without its id at hand by its description.

    ``to``: in words to the caller rather than of the caller's.
    """
    found = {}
    for slot, value in wish.items():
        if slot not in script.spec.slots:
            continue
        spec = script.spec.slots[slot]
        described = wish.get(f"described {slot}")
        if described is not None and spec.described is not None:
            said = script.kinds[spec.described.kind].say(described, rng)
            found[slot] = _placed(spec.described.phrase, said, to)
            if to and not spec.described.always:
                found[slot] += " (you don't have its number)"
        else:
            found[slot] = _placed(spec.phrase, script.say(slot, value, rng), to)
    return found


def _placed(phrase: str, said: str, to: bool) -> str:
    """A value in its phrase; in words to the caller "my" is "your", but not between quotation marks."""
    text = phrase.replace("{}", said)
    return yours(text) if to and "'{}'" not in phrase else text


def yours(text: str) -> str:
    """A caller's words as somebody else says them to the caller; places in braces stay."""
    text = re.sub(r"\bI was\b", "you were", text)
    return re.sub(r"(?<![{\w|])[a-zA-Z]+(?![}\w|])", lambda m: _YOURS.get(m[0].lower(), m[0]), text)


def full_clause(script: Script, intent: str, wish: Mapping[str, Any]) -> str:
    """A wish as a clause behind "you want to", with all that can be said of it."""
    if intent == "outside":
        return f"speak with a person about {yours(wish['topic'])}"
    spec = script.spec.intents[intent]
    best = max(spec.say, key=lambda clause: len(set(PLACE.findall(clause))))
    said = spoken_slots(script, wish, to=True)
    text = PLACE.sub(lambda m: said[m[1]], yours(best))
    left = [s for s in spec.slots if f"{{{s}}}" not in best]
    return f"{text} ({', '.join(f'{s}: {said[s]}' for s in left)})" if left else text


def scenario_text(script: Script, agenda: Mapping[str, Any]) -> str:
    """The whole scenario of an agenda, for an LLM user's system prompt."""
    facts = {n: script.kinds[f.kind].say(agenda["identity"][n], None) for n, f in script.spec.identify.fields.items()}
    about = " ".join(yours(text).capitalize() for text in script.spec.identify.parts.values()).format(**facts)
    lines = [
        f"Persona:\n\t{PERSONA_TEXT[agenda['persona']]}",
        f"Instructions:\n\tDomain: {script.spec.about}",
        f"\tKnown info:\n\t\t{about}",
    ]
    for field, wrong in agenda["wrong"].items():
        said = script.kinds[script.spec.identify.fields[field].kind].say(wrong, None)
        what = field.replace("_", " ")
        lines.append(f"\t\tAt first you give the {what} {said} by mistake; you correct it when you are not found.")
    if agenda["impostor"]:
        lines.append("\t\tThis is all you can say about yourself, even if you are not found.")
    lines.append("\tTask instructions:")
    for number, r in enumerate(agenda["requests"]):
        start = "You want to" if number == 0 else "You also want to"
        lines.append(f"\t\t{start} {full_clause(script, r['kind'], r['wish'])}.")
        lines += _later(script, r, "then", "When the agent asks you to confirm this, you change your mind")
        lines += _later(script, r, "fallback", "If the agent says that this is not available")
    if not agenda["upfront"] and len(agenda["requests"]) > 1:
        lines.append("\t\tYou mention each further wish only after the one before is settled.")
    lines.append(
        "\t\tConfirm what the agent proposes only if it is what you want. "
        "Accept it if the agent says that something is not possible."
    )
    return "\n".join(lines)


def _later(script: Script, request: Mapping[str, Any], slot: str, when: str) -> list[str]:
    wish = request[slot]
    if wish is None:
        return []
    if wish.get("drop"):
        return [f"\t\t{when}, you drop this wish and want nothing changed for it."]
    return [f"\t\t{when}: now you want to {full_clause(script, request['kind'], wish)}."]
