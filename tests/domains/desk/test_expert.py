"""The scripted expert in every scenario: clean it serves everybody decently, and each bad habit shows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.agents.expert import ExpertAgent
from muarl.chat import Message
from muarl.domains.desk.expert import DeskExpert
from muarl.domains.experts import SLOPPY, Habits
from muarl.domains.generated import generated
from muarl.rewards.user_errors import find_user_errors
from support.desk import SCENARIOS, calls, expert, made, mean, play, said, script

everywhere = pytest.mark.parametrize("name", SCENARIOS)


@everywhere
@pytest.mark.parametrize("size", ["tiny", "small", "medium"])
def test_the_clean_expert_solves_everything_decently(name, size):
    tasks = made(name, size, count=50)
    for task, episode in zip(tasks, expert(name, tasks, size), strict=True):
        audit = episode.verdict.audit
        assert episode.reward == 1, (task.id, said(episode), episode.verdict)
        assert audit["writes_without_consent"] == audit["malformed_calls"] == audit["repeated_calls"] == 0, task.id
        assert audit["access_before_authentication"] == 0 and audit.get("needless_transfers", 0) == 0
        assert audit["tool_errors"] <= 2 * task.agenda["impostor"] + bool(task.agenda["wrong"]), task.id
        assert not any(m.content and m.tool_calls for m in episode.messages), "it speaks or calls, never both"
        assert find_user_errors(task, episode.messages) == ()


@everywhere
@pytest.mark.parametrize("persona", ["terse", "chatty", "confused", "impatient"])
def test_it_serves_every_persona(name, persona):
    tasks = made(name, count=25, split="validation")
    agent = ExpertAgent(make=generated(f"{name}-generated").expert)
    assert mean(play(name, agent, tasks, seed=5, persona=persona)) == 1


@everywhere
def test_bad_habits_cost(name):
    tasks = made(name, count=60, split="train")
    agent = ExpertAgent(SLOPPY, generated(f"{name}-generated").expert)
    assert 0.5 < mean(play(name, agent, tasks)) < 0.9


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
def test_slips_are_seen_and_mended(name):
    tasks = made(name, count=40, split="train")
    episodes = expert(name, tasks, slip=0.4)
    assert sum(e.verdict.audit["tool_errors"] > 0 for e in episodes) > 0.4 * len(episodes)
    assert mean(episodes) > 0.9


@everywhere
def test_no_habit_breaks_the_conversation(name):
    tasks = made(name, "small", count=30)
    for episode in expert(name, tasks, "small", **dict.fromkeys(Habits.__dataclass_fields__, 0.4)):
        assert episode.stop.chosen, (episode.task_id, episode.stop)


@everywhere
def test_the_same_seed_gives_the_same_conversation(name):
    tasks = made(name, count=15)
    runs = [[[m.to_json() for m in e.messages] for e in expert(name, tasks, slip=0.5)] for _ in range(2)]
    assert runs[0] == runs[1]


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
    "get_order": '{"order_id": "F-10001", "customer_id": "C-1", "status": "placed", "items": [], "total": 3}',
    "get_menu": '{"dishes": []}',
    "find_restaurants": '{"restaurants": []}',
}


@given(st.lists(SAID, min_size=1, max_size=10), st.booleans())
@settings(max_examples=120)
def test_no_caller_makes_it_stumble(texts, failing):
    brain = DeskExpert(script("food-delivery"), seed=0)
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
    brain = DeskExpert(script("clinic"), seed=0)
    first = brain.act([Message("user", "I'm Mia Berg, 1984-05-17. I want to cancel appointment V-10001.")])
    assert first.tool_calls[0].arguments == {"name": "Mia Berg", "date_of_birth": "1984-05-17"}
    assert not brain.act([Message("tool", "Error: nobody", error=True)]).tool_calls
    again = brain.act([Message("user", "As I said: Mia Berg, 1984-05-17.")])
    assert not again.tool_calls and ("cannot" in again.content or "can't" in again.content)
