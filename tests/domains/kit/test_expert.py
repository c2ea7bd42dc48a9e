"""The scripted expert of every service: clean it serves everybody decently, and each error shows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.domains.kit.expert import ServiceExpert
from muarl.environments.service import environment
from muarl.types.chat import Message
from support.kit import DAYS, LOAN, SERVICES, calls, expert, library, made, mean, planned, said, service

everywhere = pytest.mark.parametrize("name", SERVICES)


def those(name, wanted, count=100):
    return tuple(t for t in made(name, split="train", count=count) if wanted(t))


@everywhere
def test_skip_confirmation_writes_without_consent(name):
    tasks = those(name, lambda t: t.agenda["requests"][0]["then"])
    episodes = expert(name, tasks, skip_confirmation=1.0)
    assert mean(episodes) < 0.4, "who never asks does not hear of the changed wish"
    assert sum(e.verdict.audit["writes_without_consent"] for e in episodes) > 0.5 * len(episodes)


@everywhere
def test_forget_second_forgets_it(name):
    two = those(name, lambda t: len(t.agenda["requests"]) > 1 and t.agenda["upfront"] and not t.agenda["reminds"])
    assert mean(expert(name, two)) == 1
    assert mean(expert(name, two, forget_second=1.0)) < 0.5


@everywhere
def test_needless_transfer_hands_everybody_over(name):
    tasks = those(name, lambda t: not t.agenda["impostor"], 30)
    for episode in expert(name, tasks, needless_transfer=1.0):
        assert episode.stop == "transfer" and len(calls(episode, "transfer")) == 1


@everywhere
def test_what_is_unavailable_or_forbidden_is_handed_over_or_tried(name):
    short = those(name, lambda t: t.tags["intent"].endswith("_unavailable"))
    for episode in expert(name, short, transfer_if_unavailable=1.0):
        assert episode.stop == "transfer" and not any("not available" in s for s in said(episode))
    forbidden = those(name, lambda t: t.tags["intent"] == "forbidden")
    assert short and forbidden
    for episode in expert(name, forbidden, transfer_if_forbidden=1.0):
        assert episode.stop == "transfer"
    for episode in expert(name, forbidden):
        assert any("can't" in s or "cannot" in s or "not possible" in s for s in said(episode)), said(episode)
    assert any(calls(e) for e in expert(name, forbidden, try_forbidden=1.0))


@everywhere
def test_wrong_ids_are_noticed_and_corrected(name):
    tasks = made(name, count=40, split="train")
    episodes = expert(name, tasks, wrong_id=0.4)
    assert sum(e.verdict.audit["tool_errors"] > 0 for e in episodes) > 0.4 * len(episodes)
    assert mean(episodes) > 0.9


SAID = st.one_of(
    st.text(max_size=50),
    st.lists(
        st.sampled_from(
            [
                "I want to", "cancel", "order F-10001", "from Golden Wok", "Yes.", "No,", "never mind", "Actually,",
                "I'm Mia Berg, 415-555-0192.", "Pad Thai", "for the Green Curry", "$5", "tip", "talk", "also", ".",
                "my plans have changed", "I also want to", "swap", "two", "visa",
            ]
        ),
        max_size=8,
    ).map(" ".join),
)  # fmt: skip
SEEN = {
    "identify_customer": '{"customer_id": "C-1", "addresses": [], "payments": []}',
    "list_orders": '{"orders": [{"order_id": "F-10001", "restaurant": "Golden Wok"}]}',
    "get_order": '{"order_id": "F-10001", "customer_id": "C-1", "restaurant_id": "R-1", "restaurant": "Golden Wok", '
    '"delivered_on": null, "status": "placed", "items": [], "tip": 0, "total": 3}',
    "get_menu": '{"dishes": []}',
    "find_restaurants": '{"restaurants": []}',
}


@given(st.lists(SAID, min_size=1, max_size=10), st.booleans())
@settings(max_examples=120)
def test_no_user_makes_it_stumble(texts, failing):
    brain = ServiceExpert(service("food-delivery"), seed=0)
    for text in texts:
        message = brain.act([Message("user", text)])
        for _ in range(12):
            assert message.content or len(message.tool_calls) == 1
            if not message.tool_calls or message.tool_calls[0].name.startswith("transfer"):
                break
            name = message.tool_calls[0].name
            failed = failing and name != "identify_customer"
            message = brain.act([Message("tool", "Error: no" if failed else SEEN.get(name, "{}"), error=failed)])
        else:
            raise AssertionError("it calls tools without end")


def test_it_refuses_whom_it_cannot_identify():
    brain = ServiceExpert(service("clinic"), seed=0)
    first = brain.act([Message("user", "I'm Mia Berg, 1984-05-17. I want to cancel appointment V-10001.")])
    assert first.tool_calls[0].arguments == {"name": "Mia Berg", "date_of_birth": "1984-05-17"}
    assert not brain.act([Message("tool", "Error: nobody", error=True)]).tool_calls
    again = brain.act([Message("user", "As I said: Mia Berg, 1984-05-17.")])
    assert not again.tool_calls and ("cannot" in again.content or "can't" in again.content)


def test_whole_sentences_are_said_as_they_are():
    def extend(it):
        it.l = it.pick(it.look("list_loans", reader_id=it.user.reader_id).loans, loan_id=it.loan) or it.missing(LOAN)
        it.unavailable_if(it.days > 14, DAYS, it.l.choices, "{days} days are not available.")
        question = "{loan}: {days} days more. Is that right?"
        it.write("extend_loan", loan_id=it.loan, days=it.days, propose=question, done="Done.")

    own = environment(library(planned(extend), variants={"done": 0.5, "unavailable": 0.5}, outside=()), name="own")
    episodes = expert(own, made(own, "medium", count=30))
    texts = [text for episode in episodes for text in said(episode)]
    assert mean(episodes) == 1
    proposals = [text for text in texts if text.endswith("days more. Is that right?")]
    assert proposals and all(text.startswith("LN-") for text in proposals)
    assert any(text == "30 days are not available. Available: 3 and 7. How many days?" for text in texts)
