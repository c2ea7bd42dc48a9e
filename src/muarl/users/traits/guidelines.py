"""How a language model is told to show the traits of the user that it plays."""

from __future__ import annotations

from muarl.users.traits.levels import Traits

_HOW_OFTEN = ((0.25, "now and then"), (0.5, "in about one message of three"), (0.75, "often"), (1.0, "nearly always"))
_BEHAVIOUR = {
    "withholding": (
        "You are sparing with information, {}: your first message says what you want without the details, you give one "
        "fact at a time though two were asked for, and you ask what a question is for before you answer it."
    ),
    "impatience": (
        "You are in a hurry, and show it {}: few words, remarks about the time. You do not put up with being asked "
        "again what you have told, nor with an agent that does not get on: say once that you will leave, and if "
        "nothing changes, leave with ###STOP### before everything is done."
    ),
    "wandering": (
        "You do not stick to the point, {}: you ask about something else (opening hours, an app, a newsletter) instead "
        "of answering, or when the agent asks you to confirm something you say that you want it otherwise. With your "
        "next message you come back to what the scenario says."
    ),
    "mistakes": (
        "You make mistakes, {}: you give a number, date or option that is slightly wrong (one digit, another choice). "
        "With your next message, or as soon as the agent repeats it to you, you say that it was wrong and give the "
        "right one from the scenario."
    ),
    "foreign_language": (
        "You write {} in {} instead of English, with names, numbers and dates as they are. If the agent says that it "
        "does not understand, or asks you to, you go on in simple English."
    ),
}
_NAMES = {"de": "German", "es": "Spanish", "fr": "French", "zh": "Chinese"}
_END = (
    "None of this changes what you want: what counts in the end is the scenario. Never say yes to something that it "
    "does not want, and leave no mistake uncorrected."
)


def behaviour(traits: Traits) -> str:
    """What a model is told of these levels, to stand behind the scenario; empty where all are 0."""
    lines = []
    for name, text in _BEHAVIOUR.items():
        level = getattr(traits, name)
        if level > 0:
            often = next(words for most, words in _HOW_OFTEN if level <= most)
            lines.append("- " + text.format(*([often, _NAMES[traits.language]] if "{} in {}" in text else [often])))
    return "\n".join(["# What you are like", *lines, _END]) if lines else ""
