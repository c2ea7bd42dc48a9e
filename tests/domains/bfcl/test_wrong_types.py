"""What tools answer to arguments of a wrong type: the texts that BFCL's own code gives, in both revisions.

``wrong_types.jsonl`` holds them, one call a line; ``text`` where both revisions answer alike, ``v3`` and ``v4`` where
not. Every call is the first after logging in.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muarl_worlds.bfcl.apis import CLASSES
from muarl_worlds.bfcl.environment import Instances, load_apis

FACTS = [json.loads(line) for line in Path(__file__).with_name("wrong_types.jsonl").read_text("utf-8").splitlines()]
CONFIGS = {
    "GorillaFileSystem": {
        "root": {
            "home": {
                "type": "directory",
                "contents": {
                    "a.txt": {"type": "file", "content": "pear\nfig"},
                    "docs": {"type": "directory", "contents": {}},
                },
            }
        }
    }
}
LOGINS = {
    "MessageAPI": "message_login(user_id='USR001')",
    "TicketAPI": "ticket_login(username='u', password='p')",
    "TradingBot": "trading_login(username='u', password='p')",
    "TravelAPI": "authenticate_travel(client_id='c', client_secret='s', refresh_token='r', grant_type='read_write', "
    "user_first_name='A', user_last_name='B')",
    "TwitterAPI": "authenticate_twitter(username='john', password='john123')",
}


def answered(revision, name, call):
    instances = Instances(revision, load_apis(revision, [name], CONFIGS))
    if name in LOGINS and not call.startswith(LOGINS[name].split("(")[0]):
        assert not instances.execute(LOGINS[name]).error
    return instances.execute(call).content


@pytest.mark.parametrize("revision", ["v3", "v4"])
@pytest.mark.parametrize("name", CLASSES)
def test_wrongly_typed_arguments_are_answered_as_the_original_answers_them(revision, name):
    facts = [fact for fact in FACTS if fact["class"] == name and ("text" in fact or revision in fact)]
    assert facts
    wrong = {
        fact["call"]: (expected, given)
        for fact in facts
        if (given := answered(revision, name, fact["call"])) != (expected := fact.get("text", fact.get(revision)))
    }
    assert not wrong
