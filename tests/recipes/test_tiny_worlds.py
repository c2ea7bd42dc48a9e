"""The tiny models' tokenizers: names, ids, days and amounts stay whole, in words and in calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from muarl.chat_formats.qwen3 import CONTROL_TOKENS, Qwen3Format
from muarl.config.load import load_config
from muarl.environments.environment import GENERATED_RULES
from muarl.environments.registry import find
from muarl.recipes import tiny
from muarl.rollouts.conversation import agent_view
from muarl_worlds.tau.telecom.steps import FACT_WORDS
from support import bfcl, kit


@dataclass(frozen=True)
class World:
    """``tokens``: how many a conversation may have on average, and at most; ``turn``, a turn of the agent;
    ``prompt``, policy and tools."""

    name: str
    count: int
    tokens: tuple[int, int]
    turn: int
    prompt: int


WORLDS = (
    World("airline", 60, (320, 768), 32, 60),
    World("telecom", 60, (250, 450), 24, 60),
    World("bfcl", 200, (160, 450), 20, 40),
)


class Played:
    """Tasks that the expert played, and the tokenizer that was made of them."""

    def __init__(self, world: World) -> None:
        self.world, self.environment = world, find(f"{world.name}-generated")
        self.tasks = kit.made(world.name, "tiny", "train", world.count)
        own = world.name == "bfcl"
        self.episodes = bfcl.expert(self.tasks) if own else kit.expert(world.name, self.tasks, "tiny")
        texts = [m.content or "" for e in self.episodes for m in e.messages]
        texts += [json.dumps(dict(c.arguments)) for e in self.episodes for m in e.messages for c in m.tool_calls]
        self.chat = Qwen3Format(tiny.make_tokenizer(self.environment, texts))
        self.entities = self.environment.entities()

    def pieces(self, text: Any) -> list[str]:
        """The tokens of a text, or of a message of the agent's."""
        ids = self.chat.tokenizer.encode(text) if isinstance(text, str) else self.chat.reply_ids(text)
        return [self.chat.text([i]) for i in ids]


@cache
def played_in(name: str) -> Played:
    return Played(next(w for w in WORLDS if w.name == name))


@pytest.fixture(
    params=[pytest.param(w.name, marks=pytest.mark.slow) if w.name == "airline" else w.name for w in WORLDS]
)
def played(request):
    return played_in(request.param)


def test_every_entity_is_one_token_of_its_own(played):
    ids = [tuple(played.chat.tokenizer.encode(e)) for e in played.entities]
    assert all(len(i) == 1 for i in ids) and len(set(ids)) == len(ids)
    assert len(tiny.pieces_of(played.environment)) + tiny.WORD_PIECES + len(CONTROL_TOKENS) < 2048


def test_what_is_copied_into_a_call_is_whole(played):
    """A call is its opening, values that are one token each (a user id is three), and joints."""
    entities, bfcl_ = set(played.entities), played.world.name == "bfcl"
    for message in (m for e in played.episodes for m in e.messages if m.role == "assistant" and m.tool_calls):
        (call,) = message.tool_calls
        if call.name == "transfer_to_human_agents":
            continue
        found = [p for p in played.pieces(message) if not p.startswith("<")]
        joints = [p for p in found if p not in entities]
        assert all(set(p) & set('"{}[]') or (bfcl_ and p == ", ") for p in joints), (call.name, joints)
        if bfcl_:
            assert [p for p in found if p in entities] == [str(v) for v in call.arguments.values()], found


def test_nothing_that_is_said_hangs_on_a_lone_space(played):
    for message in (m for e in played.episodes for m in agent_view(e.messages, GENERATED_RULES)):
        if message.role == "assistant":
            assert " " not in played.pieces(message), message.content
        if played.world.name == "bfcl":  # whoever speaks
            assert " " not in played.pieces(message.content or ""), message.content


def test_conversations_are_short_and_come_back_whole(played):
    chat, world, domain = played.chat, played.world, played.environment.make_domain("tiny")
    lengths, turns = [], []
    for task, episode in zip(played.tasks, played.episodes, strict=True):
        messages = agent_view(episode.messages, GENERATED_RULES)
        lengths.append(len(chat.training_tokens(domain.policy_text, domain.specs_for(task), messages).ids))
        for message in (m for m in messages if m.role == "assistant"):
            ids = chat.reply_ids(message)
            turns.append(len(ids))
            back = chat.parse(ids)
            assert [(c.name, dict(c.arguments)) for c in back.tool_calls] == [
                (c.name, dict(c.arguments)) for c in message.tool_calls
            ]
    mean, most = world.tokens
    assert sum(lengths) / len(lengths) < mean and max(lengths) < most, "they fit into the preset's context"
    assert max(turns) < world.turn, "and every turn into its turn limit"
    prompt = chat.prompt(domain.policy_text, domain.specs_for(played.tasks[0]), [])
    assert len(prompt) < world.prompt, "the policy and tools are a few tokens"


@pytest.mark.parametrize("name", ["airline", "telecom"])
def test_the_presets_are_the_quickstart_in_other_worlds(name):
    preset, quickstart = load_config(name), load_config("quickstart", ["rl.steps=30"])
    assert (preset.domain.name, preset.model.checkpoint) == (f"{name}-generated", f"base-{name}")
    assert (preset.sft, preset.rl, preset.eval) == (quickstart.sft, quickstart.rl, quickstart.eval)


# one world's own


def test_a_name_stands_right_before_its_id():
    played = played_in("airline")
    said = (
        "I will change reservation K to flight HAT on D in economy at $1 pay with gift card X. Shall I go ahead?"
    ).replace("K", played.entities[0])
    assert played.pieces(said)[:4] == ["I will ", "change ", "reservation ", played.entities[0]]


def test_what_the_phone_shows_is_a_token_each():
    played = played_in("telecom")
    told = "It says airplane mode off, SIM missing, no signal, mobile data on, roaming off."
    assert played.pieces(told)[1::2] == [
        "airplane mode off", "SIM missing", "no signal", "mobile data on", "roaming off"
    ]  # fmt: skip
    words = [w for facts in FACT_WORDS.values() for w in facts.values()]
    assert all(len(played.pieces(w)) == 1 for w in words)


def test_amounts_and_prices_are_the_same_tokens_wherever_they_stand():
    played = played_in("telecom")
    assert "4.00" in played.pieces("plan_id P2011; data_refueling_price_per_gb 4.00")
    assert "4.00" in played.pieces(" with 2.0 GB at $4.00 per GB")
    for text in ("I want to add 2.0 GB to my line.", "refuel line L5674 with 2.0 GB at $4.00", "2.0 GB, please.",
                 ". Available: 1.0 GB, 1.5 GB and 2.0 GB. "):  # fmt: skip
        assert "2.0" in played.pieces(text), text


def test_what_is_said_is_a_few_tokens_whose_values_are_those_of_the_calls():
    played = played_in("bfcl")
    for task in played.tasks:
        for text in task.agenda["turns"]:
            assert len(played.pieces(text)) <= 20, text
        for request in task.agenda["requests"]:
            assert set(request["slots"].values()) <= set(played.entities)
