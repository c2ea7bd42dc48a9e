"""What is no language is found, and what is language, however short, hasty or foreign, is left alone."""

from __future__ import annotations

import time

import pytest

from muarl.domains.tasks import Task
from muarl.language.coherence import broken, evidence, incoherent, read_table, used_in
from muarl.types.chat import Message
from muarl.user_errors.conduct import find_all
from muarl.users.guard import GUARDED

FINE = (
    "Yes", "No.", "W-1234", "#W1234567", "ok thx", "Jane Smith, 12 Main Street, Springfield 90210", "HAT123 and HAT204",
    "jane.smith+shop@mail.example.com", "credit_card_8897086, please.", "I don't have it at hand, sorry!!!",
    "I wnat to cancle my oder pls, the one from yesterday", "idk whats the number, cant find it rn",
    "Mountain bike, size L, color black, material aluminum", "Hmm... no no no, wait, not that one!",
    "Ich möchte meine Bestellung stornieren, bitte.", "Quiero cambiar mi reserva al lunes, por favor.",
    "我想取消订单", "Bonjour, je voudrais échanger un article de ma commande.", "👍👍",
    "Chcę anulować swoje zamówienie.",
    "1. One-way\n2. Economy\n3. It's just me traveling.\n4. No, I do not want travel insurance.",
    "Could you tell me whether the earlier flight still has two seats in economy, and what changing to it would cost?",
)  # fmt: skip


@pytest.mark.parametrize("text", FINE)
def test_what_people_write_is_left_alone(text: str) -> None:
    assert incoherent([(True, text)]) is None
    assert incoherent([(True, "I want to change my order, please."), (False, "Which one is it?"), (True, text)]) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("I w\ufffd\ufffdnt \ufffdo", "3 characters that are none"),
        ("a\x00b\x01c\x02", "3 characters that are none"),
        ("?!.. ,,,;;; !!!! .... ---- ;;;; ????", "0 letters and digits in 30"),
        ("Hello aaaaaaaaaaaaaaaaaaaa", "'a' over and over"),
        ("Yes" + "!" * 60 + " and more of the words that people say to each other all day", "'!' over and over"),
        ("I want the " * 9, "the same over and over: i want the"),
        ("no " * 12, "the same over and over: no"),
        ("qwrtz plmkn xcvbnm sdfgh", "no words: qwrtz plmkn xcvbnm"),
        ("x" + "abcdefghij" * 5, "a word without end"),
    ],
)
def test_what_nobody_writes_is_found_at_once(text: str, said: str) -> None:
    assert (broken(text) or "").startswith(said)


def test_random_words_are_found_alone_or_after_a_few() -> None:
    assert incoherent([(True, "table seven blue run of")]) is not None
    short = "candle pigeon swim orbit"
    assert evidence(short) < 0 and incoherent([(True, short)]) is None
    talk = [(True, short), (False, "I am sorry?"), (True, "velvet ladder quickly cheese"), (False, "How can I help?")]
    assert "without order or sense" in (incoherent([*talk, (True, "harbor pigeon lettuce fog")]) or "")
    long = "marble thunder bucket whisper slowly engine purple ladder cheese drift copper window fog"
    assert incoherent([(True, long)]) is not None
    assert incoherent([*talk, (True, "I want to cancel my order, please.")]) is None, "one of sense is left alone"


def test_what_was_said_before_speaks_for_a_text() -> None:
    text = "grilled lettuce orbit harbor"
    assert evidence(text, [used_in(f"You can have {text} today.")]) > evidence(text)


def test_the_rule_is_one_of_the_check_and_of_the_guard() -> None:
    assert "incoherent" in GUARDED
    task = Task(id="t", domain="d", scenario="You are Ann Lee. You want to cancel order W-1234.", actions=())
    noise = "lettuce harbor engine window quickly jump velvet table cheese copper fog marble whisper"
    messages = [Message("assistant", "Hi, how can I help?"), Message("user", noise)]
    assert [e.rule for e in find_all(task, messages)] == ["incoherent"]


def test_it_takes_time_in_proportion_to_the_text() -> None:
    words = [f"{a}{b}" for a in ("lo", "mi", "ra", "tu") for b in ("den", "gan", "pel", "sor")]

    def seconds(count: int) -> float:
        text = " ".join(words[(n * n + 7 * n) % 16] for n in range(count))
        began = time.process_time()
        incoherent([(True, text)])
        return time.process_time() - began

    seconds(100)
    assert seconds(40_000) < 40 * max(seconds(4_000), 0.01)


def test_a_table_is_read_as_it_is_written() -> None:
    table = read_table("# a remark\n- 4 .:2 the:2\n. 3 -:1\nthe 9 -:8\n")
    assert table.words == {"the"} and table.total == 16
    assert table.score("the", "-") > 0 > table.score("the", "the")
