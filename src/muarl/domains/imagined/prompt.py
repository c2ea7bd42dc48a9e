"""What a model that plays tools is told, and how its answers are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muarl.domains.imagined.ledger import Ledger
from muarl.domains.imagined.scenario import ImaginedTool, ServiceDescription

MAX_ANSWER = 20_000
"""Characters of an answer; a longer one is not read."""
MAX_PROBLEMS = 5

SYSTEM = """\
You play the software behind the tools of a service desk. An agent calls them while it serves a caller; you decide \
what each call answers, as the real software would. You never speak to anybody.

# The world
{world}

# How you answer
- Answer with one JSON object and nothing else: {{"result": ...}} where the call succeeds, {{"error": "..."}} with a \
short text where the software would fail.
- The result must fit the JSON Schema that comes with the call: every required field, no other fields.
- The ledger that comes with the call holds all that the tools have said so far. Never contradict it. What stands \
there exists and stays as it is until a call changes it; what was not found stays missing.
- What the ledger does not say you make up: plausible, concrete, in keeping with the world and the caller's situation.
- A call that changes something answers with the state afterwards. It changes what the call is about and nothing else. \
What it creates gets an id that nothing else has.
- Do what the call says, whether or not the desk's rules allow it; only what the world's description says the software \
enforces makes a call fail.
"""

CALLER = """
# The caller's situation
The agent does not know this. Make the records fit what the caller truthfully knows; if somebody gives details that \
are said to be wrong or mistaken here, nobody is found by them.
{scenario}
"""

CALL = """\
# Ledger
{ledger}

# Tool
{name}: {description}
It {kind}. Schema of its result:
{schema}

# Call
{call}"""
_KINDS = {"read": "changes nothing", "write": "changes the world", "generic": "has nothing to do with the records"}


def prompt(
    scenario: ServiceDescription, tool: ImaginedTool, arguments: Mapping[str, Any], ledger: Ledger, situation: str
) -> list[dict[str, Any]]:
    """The conversation that asks for one answer. ``situation``: what the user knows and wants, empty if unknown."""
    system = SYSTEM.format(world=scenario.world.strip())
    if situation:
        system += CALLER.format(scenario=situation.strip())
    asked = CALL.format(
        ledger=ledger.text(),
        name=tool.spec.name,
        description=tool.spec.description,
        kind=_KINDS[tool.kind],
        schema=json.dumps(tool.returns, ensure_ascii=False),
        call=json.dumps({"name": tool.spec.name, "arguments": dict(arguments)}, ensure_ascii=False, default=str),
    )
    return [{"role": "system", "content": system}, {"role": "user", "content": asked}]


def again(text: str, reasons: str) -> list[dict[str, Any]]:
    """What follows an answer that cannot be used."""
    complaint = f"This answer cannot be used: {reasons}. Answer the same call again, with JSON only."
    return [{"role": "assistant", "content": text[:MAX_ANSWER] or "(nothing)"}, {"role": "user", "content": complaint}]


class Unusable(ValueError):
    """An answer that cannot be used; its text says why."""


def read_answer(text: str, tool: ImaginedTool) -> tuple[bool, Any]:
    """(whether it is an error, the result or the error's text) of an answer. Unusable says what is wrong with it."""
    if len(text) > MAX_ANSWER:
        raise Unusable(f"it is longer than {MAX_ANSWER} characters")
    try:
        data = json.loads(_unfenced(text), parse_constant=_refuse)
    except (ValueError, RecursionError) as problem:
        raise Unusable(f"it is not JSON: {problem}") from None
    if not isinstance(data, dict) or len(data) != 1 or not set(data) <= {"result", "error"}:
        raise Unusable('it must be one object with either "result" or "error"')
    if "error" in data:
        if not isinstance(data["error"], str) or not data["error"].strip():
            raise Unusable('"error" must be a text that says why the call fails')
        return True, " ".join(data["error"].split())
    try:
        wrong = sorted(tool.validator.iter_errors(data["result"]), key=lambda e: [str(p) for p in e.absolute_path])
    except RecursionError:
        raise Unusable("it is nested too deeply") from None
    if wrong:
        problems = [f"{'.'.join(map(str, e.absolute_path)) or 'the result'}: {e.message[:200]}" for e in wrong]
        raise Unusable("it does not fit the schema: " + "; ".join(problems[:MAX_PROBLEMS]))
    return False, data["result"]


def _unfenced(text: str) -> str:
    """The text without a code fence around it."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and len(text) > 6:
        text = text.removesuffix("```").split("\n", 1)[-1] if "\n" in text else text.strip("`")
    return text


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")
