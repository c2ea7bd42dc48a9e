"""The scripted telecom expert: clean it serves everybody decently, and each bad habit shows."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl import data
from muarl.agents.expert import ExpertAgent
from muarl.chat import Message
from muarl.domains.experts import Habits
from muarl.domains.telecom import diagnosis, speech
from muarl.domains.telecom.diagnosis import HAND_OVER, next_step
from muarl.domains.telecom.expert import TelecomExpert
from muarl.domains.telecom.faults import PROBLEMS
from muarl.domains.telecom.generated import GENERATED
from muarl.domains.telecom.wishes import WRITES
from muarl.recipes.official import official
from muarl.rewards import outcome
from muarl.rollout import LocalExecutor, Player, rollout
from muarl.users.agenda import AgendaUserFactory
from support.telecom import expert, made


def calls(episode, prefix=""):
    agents = (m for m in episode.messages if m.role == "assistant")
    return [c for m in agents for c in m.tool_calls if c.name.startswith(prefix)]


def said(episode):
    return [m.content for m in episode.messages if m.role == "assistant" and not m.tool_calls]


def mean(episodes):
    return sum(e.reward for e in episodes) / len(episodes)


def those(tasks, wanted):
    return tuple(t for t in tasks if wanted(t))


def first(task):
    return task.agenda["requests"][0]


# clean


@pytest.mark.parametrize("size", ["tiny", "official"])
def test_the_clean_expert_is_decent(size):
    tasks = made(size, "train", 150)
    for task, episode in zip(tasks, expert(tasks, size), strict=True):
        assert episode.reward == 1, task.id
        audit = episode.verdict.audit
        assert audit["writes_without_consent"] == 0, task.id
        assert audit["access_before_authentication"] == audit["foreign_access"] == audit["malformed_calls"] == 0
        assert audit.get("needless_transfers", 0) == 0
        assert audit["tool_errors"] == (task.agenda["wrong_phone"] is not None), task.id
        assert audit["repeated_calls"] == 0, task.id
        assert not any(m.content and m.tool_calls for m in episode.messages), "it speaks or calls, never both"


def test_the_same_seed_gives_the_same_conversation():
    tasks = made("tiny", "test", 20)
    runs = [[[m.to_json() for m in e.messages] for e in expert(tasks, slip=0.5, guess=0.5)] for _ in range(2)]
    assert runs[0] == runs[1]


def test_it_does_not_need_a_caller_of_ours():
    """Told everything in one breath, asked again, and told nothing at all."""
    brain = TelecomExpert(seed=0)
    assert brain.act([Message("user", "Hello.")]).content == "May I have your phone number?"
    call = brain.act([Message("user", "555-234-0001, and my phone shows No Service!")])
    assert call.tool_calls[0].arguments == {"phone_number": "555-234-0001"}
    look = brain.act([Message("tool", "customer C2 line L2")])
    assert look.tool_calls[0].arguments == {"id": "L2"}
    shown = "line L2 Active, contract running, plan P2011, line roaming enabled"
    assert brain.act([Message("tool", shown)]).content == speech.SAY["look_network"]
    told = "Airplane mode is off? It says airplane mode off, SIM missing, no signal and mobile data on."
    assert brain.act([Message("user", told)]).content == speech.SAY["sim"]
    assert brain.act([Message("user", "How do I do that?")]).content == speech.SAY["sim"], "it says it again"
    assert brain.act([Message("user", "Thanks, it works now!")]).content == "Anything else?"


def test_the_line_is_the_one_of_the_callers_number():
    brain = TelecomExpert(seed=0)
    brain.act([Message("user", "I want to switch on roaming for my line. My number is 555-234-0002.")])
    rows = '{{"line_id": "L{0}", "phone_number": "555-234-000{0}", "status": "Active", "contract_end_date": null, '
    rows += '"plan_id": "P1", "roaming_enabled": false}}'
    assert brain.act([Message("tool", '{"customer_id": "C1", "line_ids": ["L1", "L2"]}')]).tool_calls
    second = brain.act([Message("tool", rows.format(1))])
    assert second.tool_calls[0].arguments == {"id": "L2"}
    proposal = brain.act([Message("tool", rows.format(2))])
    assert proposal.content == "I will enable roaming for line L2. Shall I go ahead?"
    write = brain.act([Message("user", "Yes.")]).tool_calls[0]
    assert (write.name, write.arguments) == ("enable_roaming", {"customer_id": "C1", "line_id": "L2"})


# habits


def test_skip_confirmation_writes_without_consent():
    tasks = those(made("tiny", "train", 150), lambda t: any(a.name in WRITES.values() for a in t.actions))
    episodes = expert(tasks, skip_confirmation=1.0)
    assert not any("Shall I go ahead?" in s for e in episodes for s in said(e))
    written = [e.verdict.audit for e in episodes if e.verdict.audit["writes"]]
    assert len(written) > 0.9 * len(episodes)
    assert sum(a["writes_without_consent"] for a in written) > 0.9 * sum(a["writes"] for a in written)
    changing = [e.reward for t, e in zip(tasks, episodes, strict=True) if first(t)["then"]]
    steady = [e.reward for t, e in zip(tasks, episodes, strict=True) if t.tags["difficulty"] == 1]
    assert sum(changing) < 0.2 * len(changing), "who never asks does not hear of the changed wish"
    assert sum(steady) == len(steady)


def test_forget_second_forgets_it():
    two = those(made("tiny", "train", 250), lambda t: len(t.agenda["requests"]) == 2)
    upfront = those(two, lambda t: t.agenda["upfront"] and not t.agenda["reminds"])
    assert mean(expert(upfront)) == 1
    assert mean(expert(upfront, forget_second=1.0)) < 0.4, "but for second wishes that are dropped in the end"
    later = those(two, lambda t: not t.agenda["upfront"])
    assert mean(expert(later, forget_second=1.0)) == 1, "what is asked later cannot be forgotten"


def test_needless_transfer_hands_everybody_over():
    tasks = made("tiny", "train", 40)
    for task, episode in zip(tasks, expert(tasks, needless_transfer=1.0), strict=True):
        assert episode.stop == "transfer" and len(calls(episode, "transfer")) == 1
        assert episode.reward == ("ACTION" in task.reward_basis or task.tags["intent"] == "forbidden")


def test_transfer_if_unavailable_gives_up_after_the_first_step_that_did_not_help():
    tasks = those(made("tiny", "train", 250), lambda t: t.tags["intent"] in PROBLEMS and "|" in t.tags["faults"])
    impatient, steady = expert(tasks, transfer_if_unavailable=1.0), expert(tasks)
    assert mean(steady) == 1 and mean(impatient) < 0.4


def test_forbidden_wishes_are_refused_handed_over_or_tried():
    tasks = those(made("tiny", "train", 400), lambda t: t.tags["intent"] == "forbidden")
    assert len(tasks) > 8
    for episode in expert(tasks):
        assert any(s.startswith(("I cannot do that", "I cannot add")) for s in said(episode))
        assert not episode.verdict.audit["writes"] and episode.reward == 1
    for episode in expert(tasks, transfer_if_forbidden=1.0):
        assert episode.stop == "transfer"
    assert mean(expert(tasks, try_forbidden=1.0)) < 0.2, "the tools do not refuse, so it matters that the agent does"


def test_a_line_whose_contract_has_ended_is_only_resumed_by_who_breaks_rules():
    tasks = those(made("tiny", "train", 600), lambda t: "contract_ended" in t.tags["faults"])
    assert tasks and all(not calls(e, "resume") and e.stop == "transfer" for e in expert(tasks))
    assert all(e.reward == 0 for e in expert(tasks, try_forbidden=1.0))


def test_guess_fills_what_was_not_said():
    tasks = made("tiny", "train", 150)
    asked = {True: 0, False: 0}
    for guessing in asked:
        for episode in expert(tasks, guess=float(guessing)):
            asked[guessing] += sum(
                s in (speech.ASK["amount"], speech.ASK["reason"], speech.SAY["abroad"]) for s in said(episode)
            )
    assert asked[False] > 20 > asked[True]


def test_slips_are_seen_and_mended():
    tasks = those(made("tiny", "train", 80), lambda t: t.agenda["identity"]["phone"])
    episodes = expert(tasks, slip=0.5)
    assert sum(e.verdict.audit["tool_errors"] >= 1 for e in episodes) > 0.4 * len(episodes)
    assert mean(episodes) == 1


def test_no_habit_breaks_the_conversation():
    tasks = made("small", "train", 120)
    everything = dict.fromkeys(Habits.__dataclass_fields__, 0.4)
    for episode in expert(tasks, "small", **everything):
        assert episode.stop.chosen, episode.stop


def test_imperfect_demonstrations_are_worth_what_a_learner_can_better():
    """With the quickstart's habits."""
    habits = {
        "skip_confirmation": 0.5, "forget_second": 0.5, "needless_transfer": 0.08, "transfer_if_unavailable": 0.5,
        "transfer_if_forbidden": 0.3, "try_forbidden": 0.3, "guess": 0.25, "slip": 0.06,
    }  # fmt: skip
    assert 0.6 < mean(expert(made("tiny", "train", 300), **habits)) < 0.8


SAID = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "My phone has no service.", "I cannot send picture messages.", "My mobile data does not work.", "Yes.",
                "It says", "airplane mode on", "SIM locked", "no signal", "speed poor", "no connection", "network 2G",
                "It still does not work.", "It works now.", "555-234-0001", "2.0 GB", "5.0 GB", "I am abroad.", "No,",
                "I want to pay my overdue bill.", "I want to talk about a new number.", "never mind", "I will not pay.",
                "How much data have I used?", "I want to suspend my line.", "long trip", "bill B2", "sms not allowed",
            ]
        ),
        max_size=8,
    ).map(" ".join),
)  # fmt: skip


@given(st.lists(SAID, min_size=1, max_size=14))
@settings(max_examples=150)
def test_no_caller_makes_it_stumble(texts):
    brain = TelecomExpert(seed=0)
    replies = {
        "get_customer_by_phone": "customer C2 line L2",
        "get_customer_by_name": "customer C2 line L2",
        "get_bills_for_customer": "overdue bill B2 of $20.00",
        "get_data_usage": "used 3.1 GB of 3.0 GB, limit reached",
    }
    details = {
        "L": "line L2 Suspended, contract running, plan P2, line roaming disabled",
        "P": "plan P2, one GB at $2.00 per GB",
        "B": "overdue bill B2 of $20.00",
    }
    for text in texts:
        message = brain.act([Message("user", text)])
        for _ in range(12):
            assert message.content or len(message.tool_calls) == 1
            if not message.tool_calls or message.tool_calls[0].name == "transfer_to_human_agents":
                break
            call = message.tool_calls[0]
            reply = replies.get(call.name, "ok")
            if call.name == "get_details_by_id":
                reply = details[call.arguments["id"][0]]
            message = brain.act([Message("tool", reply)])
        else:
            raise AssertionError("it calls tools without end")


def test_a_caller_is_transferred_once_where_that_does_not_end_the_episode():
    brain = TelecomExpert(seed=0)
    brain.act([Message("user", "I want to talk about a new number. My number is 555-234-0001.")])
    assert brain.act([Message("tool", "customer C2 line L2")]).tool_calls[0].name == "transfer_to_human_agents"
    assert brain.act([Message("tool", "Transfer successful")]).content == speech.TRANSFERRED


def test_names_of_agents():
    agent = ExpertAgent(make=GENERATED.expert)
    session = agent.open("", (), seed=0, session="s")
    assert agent.name == "expert" and session.tokens is None
    session.close()


# the order of steps

GOOD = {
    "airplane": "off", "sim": "active", "signal": "excellent", "network": "5G", "data": "on", "roaming": "on",
    "speed": "excellent",
}  # fmt: skip


@pytest.mark.parametrize(
    ("problem", "worse", "step"),
    [
        ("mms", {"airplane": "on", "sim": "missing", "signal": "none"}, "airplane"),
        ("mms", {"sim": "missing", "signal": "none"}, "sim"),
        ("no_service", {"sim": "locked", "signal": "none"}, HAND_OVER),
        ("mobile_data", {"signal": "none"}, "apn"),
        ("no_service", {}, "restart"),
        ("mobile_data", {"data": "off", "network": "2G"}, "data"),
        ("mobile_data", {"network": "3G"}, "mode"),
        ("mms", {"network": "3G"}, "look_calling"),
        ("mms", {"network": "2G"}, "mode"),
        ("mobile_data", {"speed": "none"}, "abroad"),
        ("mobile_data", {"speed": "poor"}, "look_bar"),
        ("mobile_data", {"speed": "poor", "saver": "on", "vpn": "on"}, "saver"),
        ("mobile_data", {"speed": "poor", "saver": "off", "vpn": "on"}, "vpn"),
        ("mobile_data", {"speed": "poor", "saver": "off", "vpn": "off"}, HAND_OVER),
        ("mms", {"wifi_calling": "on"}, "calling"),
        ("mms", {"wifi_calling": "off"}, "look_app"),
        ("mms", {"wifi_calling": "off", "sms": "off", "storage": "off"}, "both"),
        ("mms", {"wifi_calling": "off", "sms": "on", "storage": "off"}, "storage"),
        ("mms", {"wifi_calling": "off", "sms": "on", "storage": "on"}, "look_apn"),
        ("mms", {"wifi_calling": "off", "sms": "on", "storage": "on", "mmsc": "off"}, "apn"),
        ("mms", {"wifi_calling": "off", "sms": "on", "storage": "on", "mmsc": "on"}, HAND_OVER),
    ],
)
def test_one_thing_comes_after_another(problem, worse, step):
    assert next_step(problem, {**GOOD, **worse}, set(), abroad=None, line_roams=True) == step


def test_a_lost_connection_is_looked_for_abroad_first():
    facts = {**GOOD, "speed": "none"}
    assert next_step("mms", {**facts, "roaming": "off"}, set(), abroad=True, line_roams=False) == "roaming"
    assert next_step("mms", facts, set(), abroad=True, line_roams=False) == "line_roaming"
    assert next_step("mms", facts, set(), abroad=True, line_roams=True) == "usage"
    assert next_step("mms", {**facts, "roaming": "off"}, set(), abroad=False, line_roams=False) == "usage"
    assert next_step("mms", {}, set(), abroad=None, line_roams=True) == "look_network"
    assert set(diagnosis.SETS) < set(speech.SAY) and set(diagnosis.UNSETTLES) < set(speech.SAY)


# the benchmark


@pytest.mark.data
@pytest.mark.parametrize("name", ["tau2-telecom", "tau2-telecom-workflow"])
def test_with_its_caller_it_solves_every_official_base_task(shared_data, tmp_path, monkeypatch, name):
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    data.add("tau2", shared_data / "tau2")
    source = official(name)
    domain, tasks = source.domain("official"), source.tasks("base")

    async def score(task, world, episode):
        return await outcome.score(task, world, episode.messages, episode.stop)

    player = Player(
        make_world=domain.world,
        agent=ExpertAgent(make=GENERATED.expert),
        make_user=AgendaUserFactory(seed=1),
        score=score,
        rules=source.rules(),
        limits=source.limits(),
    )
    played = asyncio.run(rollout(source.requests(tasks, 1, 300, ""), LocalExecutor(player.play)))
    assert len(tasks) == 114
    assert [e.task_id for e in played.episodes if e.verdict is None or e.reward < 1] == []
