"""The tiny model's tokenizer for telecom: ids and amounts stay whole, and what the phone shows is a token each."""

from __future__ import annotations

import json

import pytest

from muarl.chat_formats.qwen3 import CONTROL_TOKENS, Qwen3Format
from muarl.environments.environment import GENERATED_RULES
from muarl.recipes import tiny
from muarl.rollouts.conversation import agent_view
from muarl_worlds.tau.telecom.steps import FACT_WORDS
from support.telecom import TELECOM, made, play


@pytest.fixture(scope="module")
def episodes():
    return play(made("tiny", "train", 60))


@pytest.fixture(scope="module")
def chat(episodes):
    texts = [m.content or "" for e in episodes for m in e.messages]
    texts += [json.dumps(dict(c.arguments)) for e in episodes for m in e.messages for c in m.tool_calls]
    return Qwen3Format(tiny.make_tokenizer(TELECOM, texts))


def pieces(chat, ids):
    return [chat.text([i]) for i in ids]


def test_every_entity_is_one_token_of_its_own(chat):
    ids = [tuple(chat.tokenizer.encode(e)) for e in TELECOM.entities()]
    assert all(len(i) == 1 for i in ids) and len(set(ids)) == len(ids)
    assert len(tiny.pieces_of(TELECOM)) + tiny.WORD_PIECES + len(CONTROL_TOKENS) < 2048


def test_what_is_copied_into_a_call_is_whole(chat, episodes):
    entities = set(TELECOM.entities())
    for message in (m for e in episodes for m in e.messages if m.role == "assistant" and m.tool_calls):
        (call,) = message.tool_calls
        if call.name == "transfer_to_human_agents":
            continue
        found = pieces(chat, chat.reply_ids(message))
        joints = [p for p in found if p not in entities and not p.startswith("<")]
        assert all(set(p) & set('"{}[]') for p in joints), (call.name, joints)


def test_nothing_that_the_agent_says_hangs_on_a_lone_space(chat, episodes):
    for message in (m for e in episodes for m in agent_view(e.messages, GENERATED_RULES) if m.role == "assistant"):
        assert " " not in pieces(chat, chat.reply_ids(message)), message.content


def test_what_the_phone_shows_is_a_token_each(chat):
    told = "It says airplane mode off, SIM missing, no signal, mobile data on, roaming off."
    assert pieces(chat, chat.tokenizer.encode(told))[1::2] == [
        "airplane mode off", "SIM missing", "no signal", "mobile data on", "roaming off"
    ]  # fmt: skip
    words = [w for facts in FACT_WORDS.values() for w in facts.values()]
    assert all(len(chat.tokenizer.encode(w)) == 1 for w in words)


def test_amounts_and_prices_are_the_same_tokens_wherever_they_stand(chat):
    def tokens(text):
        return set(pieces(chat, chat.tokenizer.encode(text)))

    price = tokens("plan_id P2011; data_refueling_price_per_gb 4.00") & tokens(" with 2.0 GB at $4.00 per GB")
    assert "4.00" in price
    for text in ("I want to add 2.0 GB to my line.", "refuel line L5674 with 2.0 GB at $4.00", "2.0 GB, please.",
                 ". Available: 1.0 GB, 1.5 GB and 2.0 GB. "):  # fmt: skip
        assert "2.0" in tokens(text), text


def test_conversations_are_short_and_come_back_whole(chat, episodes):
    domain = TELECOM.make_domain()
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
    assert sum(lengths) / len(lengths) < 250 and max(lengths) < 450
    assert max(turns) < 24, "every turn fits into its limit"
    assert len(chat.prompt(domain.policy_text, domain.tool_specs(), [])) < 60, "the policy and tools are a few tokens"


def test_the_preset_is_the_quickstart_in_telecom():
    from muarl.config.load import load_config

    telecom, quickstart = load_config("telecom"), load_config("quickstart", ["rl.steps=30"])
    assert (telecom.domain.name, telecom.model.checkpoint) == ("telecom-generated", "base-telecom")
    assert (telecom.sft, telecom.rl, telecom.eval) == (quickstart.sft, quickstart.rl, quickstart.eval)
