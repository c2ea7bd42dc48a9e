"""What tools answer to arguments of a wrong type: the texts that ACEBench's own code gives, in both languages.

``wrong_types.jsonl`` holds them, one message a line, as the executor of multi-step tasks answers it; that of multi-turn
tasks says the same of every error.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muarl_worlds.acebench.execute import ERROR, AceExecutor, instances_of, methods

FACTS = [json.loads(line) for line in Path(__file__).with_name("wrong_types.jsonl").read_text("utf-8").splitlines()]
PHONE, TRAVEL = ("BaseApi", "MessageApi", "ReminderApi", "FoodPlatform"), ("Travel",)
CONFIG = {"BaseApi": {"wifi": True, "logged_in": True}}


def answered(fact, category):
    tool = fact["message"].strip("[").partition("(")[0]
    classes = PHONE if tool in methods(instances_of(fact["language"], PHONE, CONFIG)) else TRAVEL
    return AceExecutor(instances_of(fact["language"], classes, CONFIG), category).respond(fact["message"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_wrongly_typed_arguments_are_answered_as_the_original_answers_them(language):
    facts = [fact for fact in FACTS if fact["language"] == language]
    assert len(facts) > 40
    wrong = {f["message"]: (f["answer"], given) for f in facts if (given := answered(f, "multi_step")) != f["answer"]}
    assert not wrong


def test_multi_turn_tasks_do_not_say_which_error_it_was():
    for fact in FACTS:
        raised = str(fact["answer"][0]).startswith("Error during execution: ")
        assert answered(fact, "multi_turn") == (list(ERROR) if raised else fact["answer"])
