"""What the index remembers of one line of an episodes file: figures to filter and sort by, never the texts."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NamedTuple

from muarl.accounts.metrics import DOMAIN, GENERAL_TOOLS, VIOLATIONS, handed_over_by, is_success
from muarl.audit.findings import SEVERITIES, Finding
from muarl.basics.untrusted import parse_json
from muarl.types.episode import StopReason, check_scalars

FIRST, LAST = -1, 1 << 40
"""Moments before and after all training steps."""

LONGEST_NAME = 1000
"""Characters of an episode's, a group's or a task's name."""
TOOLS = 200
"""Tools of one episode that it can be found by."""
ADVANTAGE = "advantage"
"""The tag in which a trainer notes what an episode's tokens were worth."""

_TOKENS, _MASK = b'"tokens": {"ids": [', b'"loss_mask": ['
_STEPPED = re.compile(r"(train|validation)-(\d{1,12})")
_KNOWN = {
    "eval-before": ("before", FIRST),
    "eval-after": ("after", LAST),
    "eval": ("evaluation", LAST),
    "demonstrations": ("demonstrations", FIRST - 1),
}


EVALUATED = "eval"
"""The file of episodes that a finding is about where its line does not say."""


class RunPosition(NamedTuple):
    """Where in a run a file's episodes belong. ``moment`` orders stages and steps; ``step`` None: of no step."""

    stage: str
    step: int | None
    moment: int


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One episode in the index; see store.py for the columns."""

    key: int
    name: str
    task: str
    group: str | None
    stage: str
    step: int | None
    moment: int
    reward: float | None
    solved: int | None
    without_violation: int | None
    stop: str
    domain: str
    intent: str
    persona: str
    difficulty: str
    messages: int
    turns: int
    tokens: int
    calls: int
    tool_errors: int
    general: int
    tools: str
    user_errors: int
    cost: float
    seconds: float
    advantage: float | None
    mark: int


_NAMES = tuple(field.name for field in fields(IndexRow))
COLUMNS = ", ".join("grp" if name == "group" else name for name in _NAMES)
"""The columns of a row in the index, in order: its fields ("group" is a word of SQL)."""
values_of = attrgetter(*_NAMES)
"""A row's values in the order of ``COLUMNS``."""


def place_of(stem: str) -> RunPosition:
    """The place of a file by its name without ``.jsonl``; files of other names (cold-start data) are stages."""
    if found := _STEPPED.fullmatch(stem):
        step = int(found[2])
        return RunPosition("training" if found[1] == "train" else "validation", step, step)
    stage, moment = _KNOWN.get(stem, (stem, FIRST - 1))
    return RunPosition(stage, None, moment)


def row_of(line: bytes, stem: str, place: RunPosition) -> IndexRow:
    """The index's row of one line. ValueError if the line is no episode."""
    try:
        line, sampled = without_tokens(line)
        return _row(parse_json(line), stem, place, sampled)
    except (KeyError, TypeError, AttributeError, OverflowError) as problem:
        raise ValueError(f"no episode: {type(problem).__name__}: {problem}") from None


def without_tokens(line: bytes) -> tuple[bytes, int | None]:
    """The line without its token lists, and how many tokens were sampled: most of a line's bytes are numbers that the
    index has no use for. As it is, and None, where the line is not written as ``Episode.to_json`` writes it."""
    start = line.find(_TOKENS)
    # Within a JSON string both quotes would be escaped, so this is a key; but calls may have arguments of any name.
    if start < 0 or line.find(_TOKENS, start + 1) >= 0:
        return line, None
    end = line.find(b"}", start)
    mask = line.find(_MASK, start, end)
    if mask < 0:
        return line, None
    flags = line[mask + len(_MASK) : line.find(b"]", mask)]
    if flags.translate(None, b"01, "):
        return line, None
    return line[:start] + b'"tokens": null' + line[end + 1 :], flags.count(b"1")


def _row(data: Mapping[str, Any], stem: str, place: RunPosition, sampled: int | None) -> IndexRow:
    check_scalars(data)
    stop = StopReason(data["stop"])  # ValueError for another one
    tags = data["tags"]
    reward = (
        None if data["verdict"] is None or stop is StopReason.INFRASTRUCTURE else _figure(data["verdict"]["reward"])
    )
    broken = None if reward is None else data["verdict"].get("audit", {}).get(VIOLATIONS)
    name, group = _named(data, "id"), data.get("group")
    group = None if group is None else _named(data, "group")
    turns = calls = errors = general = 0
    tools: dict[str, None] = {}
    called: list[str] = []
    spoken, role = False, None
    for turn in data["turns"]:
        message = turn["message"]
        role = message["role"]
        if role == "user":
            spoken = True
        elif role == "assistant":
            turns += spoken  # the canned greeting does not count
            called = [str(call["name"]) for call in message.get("tool_calls") or ()]
            for call in message.get("tool_calls") or ():
                calls += 1
                if len(tools) < TOOLS:
                    tools[clean(call["name"])[:200]] = None
                general += call["name"] in GENERAL_TOOLS
        elif role == "tool" and message.get("requestor", "assistant") == "assistant":
            errors += bool(message.get("error"))
    general += handed_over_by(stop, role, called) not in ("", *GENERAL_TOOLS)
    used = data["agent_usage"]
    if sampled is None:
        trace = data["tokens"]
        sampled = min(int(used["completion_tokens"]), LAST) if trace is None else sum(map(bool, trace["loss_mask"]))
    return IndexRow(
        key=_key(stem, name, group, data.get("seed")),
        name=name,
        task=_named(data, "task_id"),
        group=group,
        stage=place.stage,
        step=place.step,
        moment=place.moment,
        reward=reward,
        solved=None if reward is None else int(is_success(reward)),
        without_violation=None if broken is None or reward is None else int(is_success(reward) and not broken),
        stop=stop.value,
        domain=_word(tags.get(DOMAIN)),
        intent=_word(tags.get("intent")),
        persona=_word(tags.get("persona")),
        difficulty=_word(tags.get("difficulty")),
        messages=len(data["turns"]),
        turns=turns,
        tokens=sampled,
        calls=calls,
        tool_errors=errors,
        general=general,
        # Newlines cannot stand in a tool's name that a model was offered, so they can part names.
        tools="".join(f"\n{t.replace(chr(10), ' ')}" for t in sorted(tools)) + "\n" if tools else "",
        user_errors=len(tags.get("user_errors") or ()),
        cost=_figure(used["cost"]) + _figure(data["user_usage"]["cost"]),
        seconds=_figure(data["timings"].get("total", 0.0)),
        advantage=None if tags.get(ADVANTAGE) is None else _figure(tags[ADVANTAGE]),
        mark=mark_of(stem, name),
    )


class Mark(NamedTuple):
    """What the index remembers of a line of findings.jsonl. ``mark``: that of the episode. ``severity``: its place
    among ``SEVERITIES``, so that more is worse."""

    mark: int
    layer: str
    rule: str
    severity: int


def finding_of(line: bytes) -> tuple[Mark, Finding]:
    """What a line of findings.jsonl says. ValueError if it is no finding."""
    try:
        data = parse_json(line)
        if not isinstance(data, dict):
            raise ValueError("not an object")
        if not isinstance(data.get("episode"), str):
            raise ValueError("episode must be the id of an episode")
        found = Finding.from_json(data)
        mark = mark_of(str(data.get("file") or EVALUATED), clean(data["episode"]))
    except TypeError as problem:
        raise ValueError(f"no finding: {type(problem).__name__}: {problem}") from None
    return Mark(mark, found.layer, clean(found.rule)[:200], SEVERITIES.index(found.severity)), found


def mark_of(stem: str, name: str) -> int:
    """What the episodes of a file and the findings about them share: a number for the file's name and the episode's."""
    return _key(clean(stem), name)


def _named(data: Mapping[str, Any], field: str) -> str:
    """A name that lists show and links hold."""
    found = clean(data[field])
    if len(found) > LONGEST_NAME:
        raise ValueError(f"{field} has {len(found):,} characters, more than {LONGEST_NAME}")
    return found


def _figure(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"a figure is {number}")
    return number


def clean(value: Any) -> str:
    """Text as a database can hold it: lone surrogates, which JSON can smuggle in, become question marks."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _word(value: Any) -> str:
    return "" if value is None else clean(value)[:200]


def _key(*parts: Any) -> int:
    """A signed 64-bit number that stays the same however often a run is indexed: an episode's address."""
    text = json.dumps(parts, default=str).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def key_text(key: int) -> str:
    """A key as it stands in addresses: 16 hex digits."""
    return f"{key & (1 << 64) - 1:016x}"


def text_key(text: str) -> int | None:
    """The inverse of ``key_text``; None if the text is no key."""
    if not re.fullmatch(r"[0-9a-f]{16}", text):
        return None
    value = int(text, 16)
    return value - (1 << 64) if value >> 63 else value
