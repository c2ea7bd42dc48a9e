"""TAU2's tasks: from an entry of an official task file, or of a results file, to a Task."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from typing import Any

from muarl.basics.errors import DataError
from muarl.domains.tasks import Action, Task
from muarl.records.messages import read_message
from muarl.types.chat import Message, Requestor

NAME = "tau2"

REWARD_PARTS = ("DB", "ENV_ASSERTION", "NL_ASSERTION", "ACTION", "COMMUNICATE")

_SIDES: tuple[Requestor, ...] = ("assistant", "user")
_TELECOM_ID = re.compile(r"\[(?P<intent>\w+)\](?P<issues>.*)\[PERSONA:(?P<persona>\w+)\]")


def scenario_text(scenario: Mapping[str, Any]) -> str:
    """A task's user scenario laid out as TAU2 puts it into the user's prompt."""
    instructions = scenario["instructions"]
    if not isinstance(instructions, str):
        parts = [f"Domain: {instructions['domain']}"]
        for title, key in (
            ("Reason for call", "reason_for_call"),
            ("Known info", "known_info"),
            ("Unknown info", "unknown_info"),
            ("Task instructions", "task_instructions"),
        ):
            text = instructions[key] if key in ("reason_for_call", "task_instructions") else instructions.get(key)
            if text is not None:
                parts.append(f"{title}:\n" + textwrap.indent(text, "\t"))
        instructions = "\n".join(parts)
    lines = ["Instructions:", textwrap.indent(instructions, "\t")]
    if scenario.get("persona") is not None:
        lines = ["Persona:", textwrap.indent(scenario["persona"], "\t"), *lines]
    return "\n".join(lines)


def task_from_json(row: Mapping[str, Any], domain_name: str, *, split: str | None = None) -> Task:
    """A task from one entry of an official task file. DataError names the task and the field that is malformed.

    Telecom's ids tell the intent, the persona and the number of issues, which become tags (the last as "difficulty");
    so do the documents that a task of banking_knowledge needs ("required_documents").
    """
    name = row.get("id") if isinstance(row, Mapping) else None
    try:
        criteria = _object(row, "evaluation_criteria")
        initial = _object(row, "initial_state") or {}
        wanted = criteria or {}
        given = _list(wanted, "actions")
        assertions = _list(wanted, "env_assertions")
        if given is None and assertions is not None:
            given = []  # TAU2 then compares with the untouched database
        return Task(
            id=_text(row, "id"),
            domain=domain_name,
            scenario=scenario_text(row["user_scenario"]),
            actions=None if given is None else tuple(_action(a) for a in given),
            reward_basis=() if criteria is None else _basis(criteria),
            communicate_info=_texts(wanted, "communicate_info") or (),
            nl_assertions=_texts(wanted, "nl_assertions") or (),
            env_assertions=tuple(_function_call(a, "env_assertions") for a in assertions or ()),
            initial_data=_initial_data(initial),
            initial_actions=tuple(
                _function_call(a, "initialization_actions") for a in _list(initial, "initialization_actions") or ()
            ),
            history=_history(initial),
            ticket=row.get("ticket"),
            user_tools=_texts(row, "user_tools"),
            tags={"benchmark": NAME, "split": split, **_tags(row["id"]), **_required(row)},
            benchmark=True,
        )
    except KeyError as missing:
        raise DataError(f"{NAME} {domain_name} task {name!r}: it lacks the field {missing}") from None
    except (TypeError, ValueError, AttributeError, DataError) as problem:
        raise DataError(f"{NAME} {domain_name} task {name!r} is malformed: {problem}") from None


def _object(row: Mapping[str, Any], field: str) -> Mapping[str, Any] | None:
    value = row.get(field)
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{field} must be an object, not {type(value).__name__}")
    return value


def _list(row: Mapping[str, Any], field: str) -> list[Any] | None:
    value = row.get(field)
    if value is not None and not isinstance(value, list):
        raise TypeError(f"{field} must be a list, not {type(value).__name__}")
    return value


def _text(row: Mapping[str, Any], field: str) -> str:
    value = row[field]
    if not isinstance(value, str):
        raise TypeError(f"{field} must be a string, not {type(value).__name__}")
    return value


def _texts(row: Mapping[str, Any], field: str) -> tuple[str, ...] | None:
    """A list of strings, None if there is none (or null)."""
    values = _list(row, field)
    for value in values or ():
        if not isinstance(value, str):
            raise TypeError(f"{field} must hold strings, not {type(value).__name__}")
    return None if values is None else tuple(values)


def _basis(criteria: Mapping[str, Any]) -> tuple[str, ...]:
    """The components that make the reward; where the file names none, TAU2's default."""
    given = _texts(criteria, "reward_basis")
    basis = ("DB", "COMMUNICATE") if given is None else given
    strange = [b for b in basis if b not in REWARD_PARTS]
    if strange:
        raise ValueError(f"evaluation_criteria.reward_basis: unknown component {strange[0]!r}")
    return basis


def _side(row: Mapping[str, Any], field: str, default: str | None = None) -> Requestor:
    value = row[field] if default is None else row.get(field, default)
    if value not in _SIDES:
        raise ValueError(f"{field} must be assistant or user, not {value!r}")
    return value


def _arguments(row: Mapping[str, Any]) -> Mapping[str, Any]:
    value = row["arguments"]
    if not isinstance(value, Mapping):
        raise TypeError(f"arguments must be an object, not {type(value).__name__}")
    return value


def _action(row: Mapping[str, Any]) -> Action:
    return Action(
        name=_text(row, "name"),
        arguments=_arguments(row),
        requestor=_side(row, "requestor", "assistant"),
        action_id=_text(row, "action_id"),
        compare_args=_texts(row, "compare_args"),
    )


def _function_call(row: Any, field: str) -> Mapping[str, Any]:
    """A call of one of the environment's functions, checked; an assertion's ``assert_value`` included."""
    if not isinstance(row, Mapping):
        raise TypeError(f"{field} must hold objects, not {type(row).__name__}")
    _side(row, "env_type"), _text(row, "func_name"), _arguments(row)
    if not isinstance(row.get("assert_value", True), bool):
        raise TypeError(f"{field}: assert_value must be true or false")
    return row


def _initial_data(initial: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a task lays over each side's tables, by side; None if nothing."""
    given = _object(initial, "initialization_data") or {}
    found = {side: _object(given, field) for side, field in zip(_SIDES, ("agent_data", "user_data"), strict=True)}
    return {side: tables for side, tables in found.items() if tables is not None} or None


def _history(initial: Mapping[str, Any]) -> tuple[Message, ...]:
    given = _list(initial, "message_history") or []
    return tuple(read_message(m, f"message_history[{i}]") for i, m in enumerate(given))


def _tags(task_id: str) -> dict[str, Any]:
    """Intent, persona and difficulty where the id tells them (telecom's)."""
    told = _TELECOM_ID.fullmatch(task_id)
    if told is None:
        return {}
    return {"intent": told["intent"], "persona": told["persona"], "difficulty": len(told["issues"].split("|"))}


def _required(row: Mapping[str, Any]) -> dict[str, Any]:
    """The documents that a task needs, where the file names them (banking_knowledge's)."""
    given = _texts(row, "required_documents")
    return {} if given is None else {"required_documents": given}
