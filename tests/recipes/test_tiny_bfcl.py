"""The tiny model's tokenizer for BFCL's tools: names, ids and numbers stay whole, in words and in calls."""

from __future__ import annotations

import json

import pytest

from muarl.chat_formats.qwen3 import CONTROL_TOKENS, Qwen3Format
from muarl.environments.environment import GENERATED_RULES
from muarl.environments.registry import find
from muarl.recipes import tiny
from muarl.rollouts.conversation import agent_view
from muarl_worlds.bfcl.generated import generated_bfcl
from support.bfcl import expert, made

BFCL = find("bfcl-generated")


@pytest.fixture(scope="module")
def tasks():
    return made("tiny", "train", 200)


@pytest.fixture(scope="module")
def episodes(tasks):
    return expert(tasks)


@pytest.fixture(scope="module")
def chat(episodes):
    texts = [m.content or "" for e in episodes for m in e.messages]
    texts += [json.dumps(dict(c.arguments)) for e in episodes for m in e.messages for c in m.tool_calls]
    return Qwen3Format(tiny.make_tokenizer(BFCL, texts))


def pieces(chat, ids):
    return [chat.text([i]) for i in ids]


def test_every_entity_is_one_token_of_its_own(chat):
    ids = [tuple(chat.tokenizer.encode(e)) for e in BFCL.entities()]
    assert all(len(i) == 1 for i in ids) and len(set(ids)) == len(ids)
    assert len(tiny.pieces_of(BFCL)) + tiny.WORD_PIECES + len(CONTROL_TOKENS) < 2048


def test_what_is_copied_into_a_call_is_whole(chat, episodes):
    """A call is its opening, values that are one token each, and joints."""
    entities = set(BFCL.entities())
    for message in (m for e in episodes for m in e.messages if m.tool_calls):
        (call,) = message.tool_calls
        found = [p for p in pieces(chat, chat.reply_ids(message)) if not p.startswith("<")]
        values = [p for p in found if p in entities]
        assert values == [str(v) for v in call.arguments.values()], found
        assert all(set(p) & set('"{}[]') or p == ", " for p in found if p not in entities), found


def test_nothing_hangs_on_a_lone_space(chat, episodes):
    for message in (m for e in episodes for m in agent_view(e.messages, GENERATED_RULES)):
        found = pieces(chat, chat.tokenizer.encode(message.content or ""))
        assert " " not in found, found


def test_what_is_said_is_a_few_tokens_whose_values_are_those_of_the_calls(chat, tasks):
    entities = set(BFCL.entities())
    for task in tasks:
        for text in task.agenda["turns"]:
            found = pieces(chat, chat.tokenizer.encode(text))
            assert len(found) <= 20, found
        for request in task.agenda["requests"]:
            assert set(request["slots"].values()) <= entities


def test_conversations_are_short_and_come_back_whole(chat, tasks, episodes):
    domain = generated_bfcl("tiny")
    lengths, turns = [], []
    for task, episode in zip(tasks, episodes, strict=True):
        messages = agent_view(episode.messages, GENERATED_RULES)
        lengths.append(len(chat.training_tokens(domain.policy_text, domain.specs_for(task), messages).ids))
        for message in (m for m in messages if m.role == "assistant"):
            ids = chat.reply_ids(message)
            turns.append(len(ids))
            back = chat.parse(ids)
            assert [(c.name, dict(c.arguments)) for c in back.tool_calls] == [
                (c.name, dict(c.arguments)) for c in message.tool_calls
            ]
    assert sum(lengths) / len(lengths) < 160 and max(lengths) < 450
    assert max(turns) < 20
    assert len(chat.prompt(domain.policy_text, domain.specs_for(tasks[0]), [])) < 40, (
        "policy and tools are a few tokens"
    )
