"""What replies to a proposal say: labelled by hand, put together from parts, and as all our users say it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.domains.kit import templates as services
from muarl.domains.kit.declaration import several
from muarl.language.consent import changes_request, denies, drops_request, holds_back, is_affirmative
from muarl.users.behaviours.altered import BACK, CHATTER, INSULTS
from muarl_worlds.tau.retail.intents import SERVICE
from support.replies import AGREED, HELD_BACK, WITHDRAWN


def flat(choices: str | tuple[str, ...] | Mapping[str, tuple[str, ...]]) -> list[str]:
    if isinstance(choices, str):
        return [choices]
    return [t for several in choices.values() for t in several] if isinstance(choices, Mapping) else list(choices)


USERS = (services,)
YES = list(dict.fromkeys(t for words in USERS for t in flat(words.YES)))
DROPS = list(dict.fromkeys(t for words in USERS for t in flat(words.DROPS)))
ENDINGS = list(dict.fromkeys(t for words in USERS for t in flat(words.ENDINGS)))
CLAUSE = "cancel order #W7071271 (no longer needed) and refund $28.00 to paypal_3851865"
TO_PORTLAND = "I would send order #W2543062 to 27 Bridge Street, Suite 1, Portland, OR 13580. May I go ahead?"
TAKEN_BACK = (
    "No, wait!", "Oh no, stop!", "Hold on, please.", "Sorry, no.", "Don't do it.", "Please do not proceed.",
    "Actually, make it Friday.", "Hm, let me think about it.", "I have to ask my husband first.", "Not yet, please.",
    "On second thought, keep it.", "But not today.", "Never mind.", "I am not so sure about it.", "Or maybe not.",
    "I take that back.", "Scratch that.", "Give me a minute.", "No, no, no!",
)  # fmt: skip
"""Each of these takes a yes back that was said before it."""
BESIDE = (
    "Thank you!", "No rush.", "No, that is all.", "I don't need anything else.", "Don't worry about the receipt.",
    "Can you also check my other order?", "I need a second card, too.",
    "You have been a great help, bye.", "Nothing else for now.", "Stop by at any time.",
)  # fmt: skip
"""None of these does."""


@pytest.mark.parametrize(
    "text",
    [
        "yes", "Yes.", "y", "Yes please!", "YES, go ahead", "Sure, do it.", "ok", "Okay thanks", "Yep that's right",
        "Correct.", "Sounds good to me.", "I confirm.", "Confirmed", "Please proceed.", "Yes, no problem.",
        "Yes, please go ahead. I don't need anything else.", "That works, no rush.", "Yes, could you do it now?",
        "Yes, could you please do that?", "yes, the blue one", "Thanks. Yes, cancel it.", "That’s right",
        "Great, go ahead.", "That is correct, yes.",
        "Yes, please. No, that's all.", "Yes. Stop by at any time.",
        "I'm fine with that.", "Absolutely", "yes cancel it", "Yes, exchange it rather than return it.",
        *AGREED,
    ],
)  # fmt: skip
def test_these_agree(text):
    assert is_affirmative(text) and not drops_request(text)


@pytest.mark.parametrize(
    "text",
    [
        "", None, "no", "No, thanks.", "not yet", "I'm not sure, ok?", "Yes, but change the address first.",
        "Wait, yes, hold on.", "Actually make it red instead.", "Don't do it.", "Can you confirm the price?",
        "ok, what are my options?", "Please correct the zip.", "The order #W1 has a lamp.", "Yes. No wait.",
        "Yes, do it... no, stop!", "Yes, cancel it. Oh no, stop.", "Yes. Sorry, no.",
        "Is that okay?", "I need it right now.", "Yes. On second thought, don't cancel it.", "never mind",
        "That's wrong.", "That is not correct.", "Sure, as long as it is free.", "Before we proceed, what sum?",
        "Yes please. Do not cancel it yet.", "hmm", "Yes, I'd like to think about it.", "Let me check something first.",
        "Si esto sigue as\u00ed, me voy.", *WITHDRAWN, *HELD_BACK,
    ],
)  # fmt: skip
def test_these_do_not(text):
    assert not is_affirmative(text)


PROPOSAL = "I will cancel order #W12 and refund $40 to your Visa. Shall I go ahead?"


@pytest.mark.parametrize(
    "text",
    [
        "Yes please, and can you also check my other order?",
        "Sure, go ahead. By the way, how much is shipping on a new lamp?",
        "Yes, do it. I also have a question about my last bill.",
        "Go ahead. Once that's done, I need help with a return.",
        "Yes please. Can you also tell me when my other order will arrive?",
        "Yes, cancel it because it arrived too late.",
        "Yes. I ordered it by mistake, and my sister does not need it either.",
        "Yes, could you please go ahead and cancel it?",
        "pls do it, thx",
        "Hmm, let me think. Okay, go ahead.",
        "I refuse to pay for it. Please cancel it.",
        "Yes, please proceed with cancelling order #W12 and refunding the $40 to my Visa. I never wore it anyway.",
        "I have no objections whatsoever, and I won't be needing a new one.",
        "It is not what I hoped for, but it will do. Cancel it.",
    ],
)
def test_another_request_or_a_reason_beside_a_yes_leaves_it_one(text):
    assert is_affirmative(text, PROPOSAL)


@pytest.mark.parametrize(
    "text",
    [
        "By the way, how much is it? Yes, go ahead.",
        "Yes. My sister has the lamp. Will there be a fee?",
        "Yes if you also waive the fee",
        "Yes, but I meant the other order.",
        "Yes, this is John.",
        "Yes. I am still here.",
        "I want to cancel order #W12.",
        "I agree that it has taken far too long.",
        "No, not now. By the way, please cancel order #W99, too.",
        "Once you tell me the date, go ahead.",
    ],
)
def test_what_comes_beside_may_still_be_about_the_proposal(text):
    assert not is_affirmative(text, PROPOSAL)


@pytest.mark.parametrize(
    ("proposal", "reply", "expected"),
    [
        ("I will ship the lamp today. Shall I?", "Ship it, please.", True),
        ("I will change the lamp to a red one. Shall I?", "Change it, please.", True),
        ("I will change the lamp to a red one. Shall I?", "Hm, wait, let me change that.", False),
        ("I will change the lamp to a red one. Shall I?", "Let me change that. I want a stool.", False),
        ("I have a red and a blue lamp. Which one?", "I'll take the red one.", True),
        ("I will ship the lamp today. Shall I?", "Ship the mug, please.", False),
        ("I can refund it to your card or to PayPal. Which one?", "PayPal.", True),
        ("I can refund it to your card or to PayPal. Which one?", "The second one, please.", True),
        ("I can refund it to your card or to PayPal. Which one?", "Cash.", False),
        ("I will book Dr. Hale on Friday. Shall I?", "Yes, Friday with Dr. Hale.", True),
        ("I will book Dr. Hale on Friday. Shall I?", "Yes, Monday with Dr. Hale.", False),
        ("I will book Dr. Hale on Friday. Shall I?", "Yes, Friday with Dr. Singh.", False),
        ("I will refund it to your Visa. Shall I?", "Yes, refund it to my Mastercard.", False),
        ("I will move the desk and the chair. Shall I?", "Yes, move the desk.", False),
        (TO_PORTLAND, "Send it to 27 Bridge Street, Suite 1, Portland, OR 13580.", True),
        (TO_PORTLAND, "Send it to 27 Bridge Street, Suite 1, Atlanta, GA 54498.", False),
        (TO_PORTLAND, "Wait, I changed my mind. Send it to 27 Bridge Street, Suite 1, Atlanta, GA 54498.", False),
        (TO_PORTLAND, "Send it to 27 Bridge Street, Suite 2, Portland, OR 13580.", False),
        (TO_PORTLAND, "Send it to 27 Bridge Street, Suite 1, Portland, OR 54498.", False),
        (TO_PORTLAND, "Send it to 27 Bridge Street, thank you so much!", True),
        (TO_PORTLAND, "Send it, I have been waiting for 3 weeks.", True),
    ],
)
def test_a_proposal_tells_what_a_reply_agrees_to(proposal, reply, expected):
    assert is_affirmative(reply, proposal) is expected


@pytest.mark.parametrize("length", [3_000, 200_000])
@pytest.mark.parametrize(
    "shape",
    [
        "yes ",
        "a",
        " ",
        ".",
        "(",
        "- ",
        "if ",
        "if not ",
        "yes? ",
        "yes, ",
        "no\n",
        "and ",
        "1",
        "can you please ",
        "i need a few ",
    ],
)
def test_no_text_takes_long_to_read(shape, length):
    text = (shape * length)[:length]
    start = time.process_time()
    assert not is_affirmative(text, PROPOSAL)
    assert time.process_time() - start < 0.1


def test_our_users_mean_what_they_say():
    assert [t for t in YES if not is_affirmative(t) or drops_request(t)] == []
    assert [t for t in DROPS if is_affirmative(t) or not drops_request(t)] == []
    assert [t for t in ENDINGS if is_affirmative(t) or drops_request(t)] == []
    changes = [text for slot in SERVICE.slots.values() for text in several(slot.change)]
    assert [t for t in changes if is_affirmative(t) or drops_request(t)] == []


def test_any_yes_can_be_taken_back():
    pairs = product((*YES, *AGREED), TAKEN_BACK)
    assert [f"{yes} {tail}" for yes, tail in pairs if is_affirmative(f"{yes} {tail}")] == []


@pytest.mark.parametrize("proposal", [None, *(services.put(p, CLAUSE) for p in services.PROPOSALS)])
def test_every_yes_of_our_users_is_one(proposal):
    chatty = [f"{yes} {more}" for yes, more in product(YES, (*CHATTER, *INSULTS))]
    late = [f"{back} {yes}" for back, yes in product(BACK, YES)]
    curt = [yes.replace(", please", "").replace(" please", "") for yes in YES]
    assert [t for t in (*YES, *curt, *chatty, *late) if not is_affirmative(t, proposal)] == []


def test_what_stands_beside_a_yes_leaves_it_one():
    assert [f"{yes} {tail}" for yes, tail in product(YES, BESIDE) if not is_affirmative(f"{yes} {tail}")] == []


@given(st.sampled_from([*YES, *AGREED, *WITHDRAWN, *DROPS]))
def test_case_spaces_and_apostrophes_change_nothing(text):
    for other in (text.upper(), f"  {text}\n", text.replace(" ", "  "), text.replace("'", "’")):
        assert is_affirmative(other) == is_affirmative(text) and drops_request(other) == drops_request(text)


@given(st.text(max_size=200), st.none() | st.text(max_size=200))
def test_any_text_can_be_read(text, proposal):
    assert is_affirmative(text, proposal) + holds_back(text, proposal) < 2
    assert isinstance(denies(text), bool) and isinstance(drops_request(text), bool)
    assert isinstance(changes_request(text), bool)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Never mind.", True),
        ("Oh well, never mind then.", True),
        ("Actually, forget it, I'll keep the flight.", True),
        ("Please just leave it.", True),
        ("Hmm, no. Leave it as it was.", True),
        ("I don't want it any more.", True),
        ("Yes, go ahead. No, wait! Never mind, leave it.", True),
        ("My tea is getting cold, but never mind.", False),
        ("Never mind the lamp, I want the mug.", False),
        ("Forget it, I want the blue one.", False),
        ("Leave it at the door, please.", False),
        ("I will leave it to you which one.", False),
        ("No, I want the mug.", False),
        ("", False),
        (None, False),
    ],
)
def test_a_request_is_dropped_in_so_many_words(text, expected):
    assert drops_request(text) is expected
