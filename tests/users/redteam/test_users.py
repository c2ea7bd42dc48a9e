"""How each kind of red-team user behaves, told from what it says."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.types.chat import Message
from muarl.users.agenda_user import PATIENCE
from muarl.users.behaviours.altered import CHATTER, INSULTS, SILENCES
from muarl.users.behaviours.foreign import Foreign
from muarl.users.behaviours.languages import LANGUAGES
from muarl.users.redteam.kinds import GUIDELINES, KINDS
from muarl.users.redteam.tasks import iter_red_team
from muarl.users.redteam.templates import PRESSURE
from support.environments import users_of
from support.redteam import COMMON, DOMAINS, Doer, expert, make, play, said, some, source

EVERY = [(d, k) for d in DOMAINS for k in COMMON]


@settings(max_examples=6)
@given(st.sampled_from(EVERY), st.integers(0, 500), st.integers(0, 2**31))
def test_a_user_follows_from_task_and_seed_and_always_ends(which, index, seed):
    task = make(*which, index)
    for agent in (expert(task), IdleAgent(), TransferAgent(), Doer([], "Hm.")):
        first, second = (play(task, agent, seed=seed, turns=60) for _ in range(2))
        assert [m.to_json() for m in first.messages] == [m.to_json() for m in second.messages]
        assert not first.stop.truncated, "it gives up in the end"
        assert all(m.tool_calls or (m.content or "").strip() for m in first.messages if m.role == "user")


@pytest.mark.parametrize(("domain", "kind"), EVERY)
def test_seeds_vary_what_is_said(domain, kind):
    tasks = some(domain, kind, 3)
    assert len({tuple(said(play(task, expert(task), seed=s))) for task in tasks for s in range(4)}) > 5


@pytest.mark.parametrize("persona", sorted(PATIENCE))
def test_any_persona_can_play_them(persona):
    for domain, kind in EVERY:
        task = some(domain, kind, 1)[0]
        user = users_of(task.domain, persona=persona)(task, seed=3)
        assert user is not None


def test_pressure_comes_in_several_tactics_before_it_ends():
    for domain in DOMAINS:
        for task in some(domain, "pressure"):
            lines = said(play(task, Doer([], "I am sorry, I cannot do that.")))
            used = {t for t, texts in PRESSURE.items() for text in texts if any(text in line for line in lines)}
            assert len(used) >= 4


def test_an_impostor_insists_and_half_known_ones_never_say_what_is_right():
    for domain in DOMAINS:
        for task in some(domain, "impostor", 10):
            lines = said(play(task, expert(task)))
            if task.tags["variant"] != "half known":
                continue
            victim = task.tags["victim"]
            assert any(victim in line for line in lines)
            ids = {i for trap in task.tags["traps"] for i in trap["ids"]}
            known = {i for i in ids if any(i in line for line in lines)}
            assert not any("_" in i or i.startswith(("C", "555")) for i in known), "what identifies the victim"


def test_changing_goals_change_and_only_the_last_is_written():
    variants = set()
    for domain in DOMAINS:
        for task in some(domain, "changing", 24):
            episode = play(task, expert(task))
            variants.add(task.tags["variant"])
            if task.tags["variant"].startswith("takes a yes back"):
                assert any(re.match(r"Yes.*(wait|stop)", line) for line in said(episode))
            if "after" in task.tags["variant"]:
                writes = [a for a in task.actions if a.name.startswith(("modify", "return"))]
                assert len(writes) == 2
    assert variants >= {"back and forth", "takes a yes back", "after it was done", "withdraws"}


def test_angry_users_shout_and_keep_their_facts():
    for domain in DOMAINS:
        task = some(domain, "angry", 1)[0]
        episode = play(task, expert(task))
        lines = said(episode)
        assert any(text in lines[0] for text in INSULTS)
        assert episode.verdict.reward == 1.0


def test_chatter_and_silence_stand_where_answers_should():
    for domain in DOMAINS:
        for kind, words in (("off_topic", CHATTER), ("silent", SILENCES)):
            asides = [line for task in some(domain, kind) for line in said(play(task, expert(task))) if line in words]
            assert len(asides) >= 4, (domain, kind)


def test_one_who_never_answers_agrees_to_nothing():
    for domain in DOMAINS:
        tasks = [t for t in some(domain, "silent", 10) if t.tags["variant"] == "never answers"]
        assert tasks
        for task in tasks:
            lines = said(play(task, expert(task)))
            assert not any(line.lower().startswith("yes") for line in lines)


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_other_languages_keep_ids_and_fall_back_on_english(language):
    for domain in DOMAINS:
        task = next(t for t in iter_red_team(source(domain), "language") if t.agenda["redteam"]["language"] == language)
        lines = said(play(task, expert(task)))
        assert re.search(LANGUAGES[language].native, lines[0]) or language in ("de", "es", "fr")
        assert not re.search(r"\b(I want|Please|Hello)\b", lines[0])
        told = " ".join(lines)
        goal = task.agenda["requests"][0]["goal"]
        named = [v for k, v in goal.items() if k in ("order_id", "reservation_id")]
        assert all(v in told or task.agenda["requests"][0]["unknown"] for v in named)


REPLIES = {
    "de": ("Gern. Wie lauten Ihr Name und Ihre Postleitzahl?", "Soll ich die Bestellung {} stornieren?"),
    "es": ("Claro. ¿Me dice su nombre y su código postal?", "¿Confirma que cancelo el pedido {}?"),
    "fr": ("Bien sûr. Quel est votre nom, et votre code postal ?", "Souhaitez-vous que j'annule la commande {} ?"),
    "zh": ("好的,请告诉我您的姓名和邮编。", "是否确认取消订单 {}?"),
}


@pytest.mark.parametrize("language", sorted(REPLIES))
async def test_an_agent_that_answers_in_the_language_is_understood(language):
    task = next(
        t
        for n in itertools.count()
        for t in some("retail", "language", n + 1)[n:]
        if t.agenda["redteam"]["language"] == language
        and t.agenda["requests"][0]["kind"] == "cancel"
        and t.agenda["requests"][0]["then"] is None
        and not t.agenda["requests"][0]["unknown"]
        and not t.agenda["wrong"]
    )
    user = users_of(task.domain)(task, seed=0)
    assert isinstance(user, Foreign)
    who, order = task.agenda["identity"], task.agenda["requests"][0]["goal"]["order_id"]
    talk = [Message("assistant", "Hi!")]
    opening = (await user.reply(talk)).message.content
    ask, propose = REPLIES[language]
    talk += [Message("user", opening), Message("assistant", ask)]
    told = (await user.reply(talk)).message.content
    assert " ".join(who["name"].values()) in told and who["zip"] in told
    talk += [Message("user", told), Message("assistant", propose.format(order))]
    agreed = (await user.reply(talk)).message.content
    assert agreed in LANGUAGES[language].phrases["yes"]


def test_a_scenario_tells_a_model_how_to_play_each_kind():
    for domain, kind in EVERY:
        for task in some(domain, kind, 4):
            text = GUIDELINES.system_prompt(task.scenario)
            assert KINDS[kind].behaviour in text
            assert "How you behave" in text
            if "language" in task.agenda["redteam"]:
                assert LANGUAGES[task.agenda["redteam"]["language"]].name in text
            forbidden = [r for r in task.agenda["requests"] if r.get("forbidden")]
            if forbidden:
                assert "insist" in text
                named = forbidden[0]["goal"].get("order_id") or forbidden[0]["goal"].get("reservation_id")
                assert named is None or named in text
            for goal in task.agenda["requests"][0].get("thens", ()):
                assert "At proposal number 1" in text and goal
