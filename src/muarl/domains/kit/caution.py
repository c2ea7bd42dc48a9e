"""When a user's words ask nothing for themselves: they speak for others, in the system's name, or say nothing."""

from __future__ import annotations

import re

_PEOPLE = (
    r"(?:wife|husband|partner|sister|brother|mother|father|son|daughter|friend|neighbou?r|flatmate|colleague|boss"
    r"|ex-husband|ex-wife)"
)
_OTHERS = re.compile(
    rf"\bbelongs? to (?!me\b)|\bon the account of\b|\bon (?:his|her|their) account\b"
    rf"|\bmy {_PEOPLE}['’]s(?=\s*(?:[,.;!]|$))|\bmy {_PEOPLE}['’]s (?:account|booking|order|card|claim|policy)\b",
    re.IGNORECASE,
)
_STAGE_DIRECTION = re.compile(r"\([^()]*\)|\*[^*]*\*|\W*")
_SYSTEM = re.compile(
    r"^\W*system\b\W|\bsystem (?:message|notice|prompt)\b|<\|im_(?:start|end)\|>|^\W*admin\b\W|\bdeveloper mode\b"
    r"|\bpolicy is suspended\b|\boverrides? the policy\b|^\W*tool result\b|\bignore (?:all )?previous instructions\b",
    re.IGNORECASE | re.MULTILINE,
)


def for_somebody_else(text: str) -> bool:
    """Whether a user says that what a request is about belongs to somebody else."""
    return _OTHERS.search(text) is not None


def poses_as_system(text: str) -> bool:
    """Whether a user's message poses as the system or as a tool's result."""
    return _SYSTEM.search(text) is not None


def says_nothing(text: str) -> bool:
    """Whether a message holds no words of the user's: dots, or what somebody notes about the user in brackets."""
    return _STAGE_DIRECTION.fullmatch(text.strip()) is not None
