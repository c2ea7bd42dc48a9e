"""The tokens of a tiny model that reads several worlds: a value is one token wherever it stands."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from muarl.backends.users import make_users
from muarl.config.load import load_config
from muarl.domains.scripted_expert import ErrorProfile
from muarl.environments.configure import places_of
from muarl.environments.registry import find
from muarl.recipes.demonstrations import demonstrate
from muarl.recipes.tiny import SPARE, make_model, make_tokenizer, pieces_of, system_pieces
from muarl.recipes.tiny_pieces import Values, piece_reader, straddling, untangled

WORLDS = ("hotel-generated", "bank-generated", "food-delivery-generated")


def texts_of(domain: str, seed: int, count: int) -> list[str]:
    """What is said and called in some conversations of a domain."""
    config = load_config("quickstart", [f"domain.name={domain}"])
    places = places_of(config, with_rl=False)
    tasks = places.draw("train", count, seed, 0)
    episodes = demonstrate(places, make_users(config.user, places), tasks, ErrorProfile(), seed=seed)
    messages = [m for e in episodes for m in e.messages]
    return [m.content or "" for m in messages] + [json.dumps(dict(c.arguments)) for m in messages for c in m.tool_calls]


@cache
def read(seed: int = 1, count: int = 16) -> tuple[str, ...]:
    return tuple(text for name in WORLDS for text in texts_of(name, seed, count))


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    return make_tokenizer([find(name) for name in WORLDS], list(read()), spare=3)


@cache
def values() -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for name in WORLDS for value in find(name).entities()))


def broken(texts: tuple[str, ...]) -> list[str]:
    """The values that stand in texts by themselves and are cut by a token."""
    known, found = Values(values()), []
    for text in texts:
        spans = tokenizer()(text, return_offsets_mapping=True, add_special_tokens=False)["offset_mapping"]
        found += [text[place:] for _, place in straddling(text, spans, known.spans(text))]
    return found


def test_a_piece_that_reaches_into_a_value_is_cut() -> None:
    pieces = ["$12", "12.00", "Tran", "Transfer successful", "the ", "costs "]
    texts = ["it costs $12.00", "a tip of $12", "Transfer successful", "costs $12.00, and 12.00 more"]
    assert untangled(pieces, ["$12", "12.00", "Tran"], texts) == [
        "$", "12", "12.00", "Tran", "Transfer successful", "the ", "costs "
    ]  # fmt: skip


@given(
    pieces=st.lists(st.text("ab12$. ", min_size=1, max_size=4), min_size=1, max_size=8, unique=True),
    texts=st.lists(st.text("ab12$. ", max_size=12), max_size=6),
    data=st.data(),
)
def test_whatever_the_pieces_no_value_is_cut_afterwards(
    pieces: list[str], texts: list[str], data: st.DataObject
) -> None:
    own = data.draw(st.lists(st.sampled_from(pieces), unique=True))
    found = untangled(pieces, own, texts)
    reader, known = piece_reader(found), Values(own)
    for text in texts:
        assert not list(straddling(text, reader.encode(text).offsets, known.spans(text)))


def test_pieces_of_worlds_apart_stay_as_they_are() -> None:
    assert untangled(["ab", "cd"], ["cd"], ["ab cd", "abcd"]) == ["ab", "cd"]


@pytest.mark.slow
def test_every_value_is_within_one_token_wherever_it_was_read() -> None:
    assert broken(read()) == []


@pytest.mark.slow
def test_hardly_any_value_is_cut_in_conversations_of_other_tasks() -> None:
    texts = read(2, 15)
    known = Values(values())
    there = sum(len(list(known.spans(text))) for text in texts)
    assert there > 1000
    assert len(broken(texts)) <= there / 500


@pytest.mark.slow
def test_a_tokenizer_of_several_worlds_has_nearly_all_pieces_of_each_as_single_tokens() -> None:
    known = tokenizer().get_added_vocab()
    for name in WORLDS:
        pieces = pieces_of(find(name))
        kept = [piece for piece in pieces if piece in known]
        assert len(kept) > 0.97 * len(pieces)
        assert all(tokenizer().encode(piece, add_special_tokens=False) == [known[piece]] for piece in kept)


@settings(max_examples=50)
@given(parts=st.lists(st.one_of(st.text(max_size=8), st.sampled_from(["Mia", "$12", " USD", "\n", "é"])), max_size=8))
def test_any_text_survives_the_way_to_tokens_and_back(parts: list[str]) -> None:
    text = "".join(parts)
    assert tokenizer().decode(tokenizer().encode(text, add_special_tokens=False)) == text


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_said_survives_it(seed: int) -> None:
    for text in read(seed, 16 if seed == 1 else 15):
        assert tokenizer().decode(tokenizer().encode(text, add_special_tokens=False)) == text


def test_spare_tokens_stand_in_no_text() -> None:
    spare = {tokenizer().convert_tokens_to_ids(SPARE.format(number)) for number in range(3)}
    assert len(spare) == 3
    assert not any(spare & set(tokenizer().encode(text, add_special_tokens=False)) for text in read())


@cache
def reads_words() -> PreTrainedTokenizerFast:
    """With the tools' names among the texts, as a base is made."""
    names = [tool.name for name in WORLDS for tool in find(name).make_domain().tool_specs()]
    return make_tokenizer([find(name) for name in WORLDS], [*read(), *names], words=True)


def split(text: str) -> list[str]:
    return [reads_words().decode([i]) for i in reads_words().encode(text, add_special_tokens=False)]


@pytest.mark.slow
def test_with_words_sentences_and_tools_are_read_in_words_that_worlds_share() -> None:
    assert split("Shall I go ahead?") == ["Shall ", "I ", "go ", "ahead", "?"]
    assert split("cancel_booking")[:2] == split("cancel_order")[:2] == ["cancel", "_"]
    calls = ['\n{"name": "cancel_booking", "arguments": {"booking_id": "', '\n{"name": "cancel_order", "arguments": {']
    assert all(split(call)[:3] == ['\n{"name": "', "cancel", "_"] for call in calls)
    known = reads_words().get_added_vocab()
    for name in WORLDS:
        assert not [phrase for phrase in find(name).phrases() if phrase in known and len(phrase.split()) > 3]
        assert all(tool.name not in known for tool in find(name).make_domain().tool_specs())


def test_with_words_values_and_the_system_prompt_are_still_single_tokens() -> None:
    known = reads_words().get_added_vocab()
    for name in WORLDS:
        own = list(dict.fromkeys(find(name).entities()))
        assert sum(value in known for value in own) > 0.97 * len(own)
        domain = find(name).make_domain()
        assert all(len(split(piece)) == 1 for piece in system_pieces(domain.policy_text, domain.tool_specs()))


def test_with_words_what_is_said_survives_the_way_to_tokens_and_back() -> None:
    for text in read():
        assert reads_words().decode(reads_words().encode(text, add_special_tokens=False)) == text


def test_with_words_a_model_has_room_for_longer_conversations() -> None:
    room = [make_model(50, hidden=32, words=words).config.max_position_embeddings for words in (False, True)]
    assert room == [2048, 4096]
