"""The tiny model's tokenizer for the airline: ids, days and prices stay whole, also in calls with lists and numbers."""

from __future__ import annotations

import json

import pytest

from muarl.chat_formats.qwen3 import CONTROL_TOKENS, Qwen3Format
from muarl.environments.environment import GENERATED_RULES
from muarl.recipes import tiny
from muarl.rollouts.conversation import agent_view
from support.airline import AIRLINE, expert, made


@pytest.fixture(scope="module")
def episodes():
    return expert(made("tiny", "train", 60))


@pytest.fixture(scope="module")
def chat(episodes):
    texts = [m.content or "" for e in episodes for m in e.messages]
    texts += [json.dumps(dict(c.arguments)) for e in episodes for m in e.messages for c in m.tool_calls]
    return Qwen3Format(tiny.make_tokenizer(AIRLINE, texts))


def pieces(chat, ids):
    return [chat.text([i]) for i in ids]


def test_every_entity_is_one_token_of_its_own(chat):
    ids = [tuple(chat.tokenizer.encode(e)) for e in AIRLINE.entities()]
    assert all(len(i) == 1 for i in ids) and len(set(ids)) == len(ids)
    assert len(tiny.pieces_of(AIRLINE)) + tiny.WORD_PIECES + len(CONTROL_TOKENS) < 2048


def test_what_is_copied_into_a_call_is_whole(chat, episodes):
    """Every id, day, name and number in the agent's calls is a token; a user id is three."""
    entities = set(AIRLINE.entities())
    for message in (m for e in episodes for m in e.messages if m.tool_calls):
        (call,) = message.tool_calls
        if call.name == "transfer_to_human_agents":
            continue
        found = pieces(chat, chat.reply_ids(message))
        joints = [p for p in found if p not in entities and not p.startswith("<")]
        assert all(set(p) & set('"{}[]') for p in joints), (call.name, joints)


def test_nothing_that_the_agent_says_hangs_on_a_lone_space(chat, episodes):
    for message in (m for e in episodes for m in agent_view(e.messages, GENERATED_RULES) if m.role == "assistant"):
        assert " " not in pieces(chat, chat.reply_ids(message)), message.content


def test_a_name_stands_right_before_its_id(chat):
    said = (
        "I will change reservation K to flight HAT on D in economy at $1 pay with gift card X. Shall I go ahead?"
    ).replace("K", AIRLINE.entities()[0])
    assert pieces(chat, chat.tokenizer.encode(said))[:4] == [
        "I will ",
        "change ",
        "reservation ",
        AIRLINE.entities()[0],
    ]


def test_conversations_are_short_and_come_back_whole(chat, episodes):
    domain = AIRLINE.make_domain("tiny")
    lengths, turns = [], []
    for episode in episodes:
        messages = agent_view(episode.messages, GENERATED_RULES)
        lengths.append(len(chat.training_tokens(domain.policy_text, domain.tool_specs(), messages).ids))
        for message in (m for m in messages if m.role == "assistant"):
            ids = chat.reply_ids(message)
            turns.append(len(ids))
            back = chat.parse(ids)
            assert [(c.name, dict(c.arguments)) for c in back.tool_calls] == [
                (c.name, dict(c.arguments)) for c in message.tool_calls
            ]
    assert sum(lengths) / len(lengths) < 320 and max(lengths) < 768, "they fit into the preset's context"
    assert max(turns) < 32, "and every turn into its turn limit"
    assert len(chat.prompt(domain.policy_text, domain.tool_specs(), [])) < 60, "the policy and tools are a few tokens"


def test_the_preset_is_the_quickstart_in_the_airline():
    from muarl.config.load import load_config

    airline, quickstart = load_config("airline"), load_config("quickstart", ["rl.steps=30"])
    assert (airline.domain.name, airline.model.checkpoint) == ("airline-generated", "base-airline")
    assert (airline.sft, airline.rl, airline.eval) == (quickstart.sft, quickstart.rl, quickstart.eval)
