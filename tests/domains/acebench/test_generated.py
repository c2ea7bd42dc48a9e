"""Generated phone and travel tasks: what they ask for, what tools refuse, and that nothing of them is the benchmark's.

What holds of all environments is in environments/test_contract.py.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from muarl.basics.errors import DataError
from muarl.domains.generated import SPLITS
from muarl.domains.scripted_expert import TRANSFER
from muarl.types.chat import ToolCall
from muarl_worlds.acebench import catalogue
from muarl_worlds.acebench.generated_domain import HELPERS, generated_acebench
from muarl_worlds.acebench.phone import CAPACITY
from muarl_worlds.acebench.services import PHONE_SERVICE, TRAVEL_SERVICE
from support.kit import calls, env, expert, made, mean, said

PHONE, TRAVEL = PHONE_SERVICE.name, TRAVEL_SERVICE.name


def of(service, size="small", split="train", count=60):
    return [task for task in made("acebench", size, split, count) if task.agenda["service"] == service]


def kinds(tasks):
    return Counter(request["kind"] for task in tasks for request in task.agenda["requests"])


@pytest.mark.slow
def test_every_wish_occurs_and_both_services_have_their_share():
    tasks = made("acebench", "small", "train", 600)
    wished = kinds(tasks)
    assert set(wished) == {i.name for s in (PHONE_SERVICE, TRAVEL_SERVICE) for i in s.intents} | {"outside"}
    assert sum(t.agenda["service"] == PHONE for t in tasks) / len(tasks) == pytest.approx(0.58, abs=0.06)
    written = {a.name for t in tasks for a in t.actions}
    kind_of = generated_acebench("small").kind_of
    assert {n for n in generated_acebench("small").tool_names() if kind_of(n) == "write"} <= written
    assert {"changes_mind", "feasible", "service"} <= set(tasks[0].tags)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["tiny", "small"])
def test_each_service_has_its_own_tools_and_policy(size):
    domain = generated_acebench(size)
    phone, travel = of(PHONE, size, count=20)[0], of(TRAVEL, size, count=20)[0]
    tools = [{spec.name for spec in domain.specs_for(task)} for task in (phone, travel)]
    assert tools[0] & tools[1] == {TRANSFER}
    assert {"send_message", "turn_on_wifi", "view_logged_in_users"} <= tools[0]
    assert {"reserve_flight", "cancel_reservation"} <= tools[1] and not tools[1] & set(HELPERS)
    assert "messages" in domain.policy_for(phone) and "travellers" in domain.policy_for(travel)
    assert (len(domain.policy_for(phone)) < 1000) == (size == "tiny")


def test_a_task_without_a_world_is_refused():
    with pytest.raises(DataError, match="says nothing of its world"):
        generated_acebench("small").classes_of(None)


def test_what_a_tool_refuses_is_an_error_with_the_benchmarks_text():
    task = next(t for t in of(PHONE) if not t.database.tables["device"]["phone"]["logged_in"])
    world = generated_acebench("small").world(task)

    def answer(tool, **arguments):
        return world.call("assistant", ToolCall("", tool, arguments))

    refused = answer("get_latest_message_id")
    assert refused.error and json.loads(refused.content)["message"].startswith("Device not logged in")
    assert not answer("login_device").error and [w.name for w in world.writes] == ["login_device"]
    assert not answer("get_latest_message_id").error
    assert answer("delete_message", message_id=99).error
    desk = generated_acebench("small").world(of(TRAVEL)[0])
    nowhere = ToolCall("", "get_flight_details", {"origin": "Nowhere"})
    assert desk.call("assistant", nowhere).content == "There are no direct flights that meet the criteria."
    assert desk.call("assistant", nowhere).error


def test_worlds_of_one_task_do_not_touch_each_other():
    domain, task = generated_acebench("small"), of(PHONE)[0]
    worlds = [domain.world(task) for _ in range(20)]
    fresh = worlds[0].digest()
    for number, world in enumerate(worlds):
        if number % 2:
            world.call("assistant", ToolCall("", "login_device", {}))
            world.call("assistant", ToolCall("", "add_reminder", {"title": "a", "description": "b", "time": "c"}))
    assert {world.digest() for world in worlds[::2]} == {fresh}


def test_audits_look_into_the_live_state():
    world = generated_acebench("small").world(of(TRAVEL)[0])
    kit = world.toolkit()
    number, reservation = next(iter(kit.db["reservations"].scan()))
    about = {"user_id": reservation["user_id"], "reservation_id": number, "reason": "I am ill"}
    assert kit.get_reservation_details(reservation_id=number)[0]["user_id"] == reservation["user_id"]
    world.call("assistant", ToolCall("", "cancel_reservation", about))
    assert dict(world.toolkit().db["users"].peek(reservation["user_id"])) == dict(
        world.instances["Travel"].users[reservation["user_id"]]
    )
    with pytest.raises(ValueError, match="no direct flights"):
        kit.get_flight_details(origin="Nowhere")
    with pytest.raises(AttributeError):
        kit.no_such_tool  # noqa: B018
    assert world.toolkit("user") is None


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_wifi_and_the_lock_are_left_alone_until_a_tool_complains(size):
    seen = Counter()
    for episode in expert("acebench", made("acebench", size, "train", 30), size):
        assert episode.reward == 1, episode.task_id
        before = ""
        for message in episode.messages:
            for call in message.tool_calls:
                if call.name == "turn_on_wifi":
                    assert "Wi-Fi" in before
                if call.name == "login_device":
                    assert "not logged in" in before
                seen[call.name] += 1
            before = message.content or ""
    assert seen["turn_on_wifi"] and seen["login_device"]


def test_a_full_inbox_an_unknown_receiver_and_an_empty_purse_are_told_of_and_mended():
    tasks = [t for t in made("acebench", "small", "train", 200) if t.agenda["service"] == PHONE]
    full = [t for t in tasks if "send_message" in kinds([t]) and len(t.database.tables["inbox"]) == CAPACITY]
    strangers = [t for t in tasks if t.tags["intent"] == "send_message_unavailable"]
    dear = [t for t in tasks if t.tags["intent"] == "order_food_unavailable"]
    assert full and strangers and dear
    told = ["\n".join(said(e)) for e in expert("acebench", full, "small")]
    assert all("Memory is full, which message would you like to delete?" in text for text in told)
    for episode in expert("acebench", strangers, "small"):
        assert episode.reward == 1 and len(calls(episode, "send_message")) >= 2
    refused = [m.content or "" for e in expert("acebench", dear, "small") for m in e.messages if m.error]
    assert any("Insufficient balance" in text for text in refused)


def test_a_wrong_password_is_corrected():
    wrong = [t for t in made("acebench", "small", "train", 200) if t.agenda["wrong"] and not t.agenda["impostor"]]
    assert {t.agenda["service"] for t in wrong} == {PHONE, TRAVEL}
    assert {name for t in wrong for name in t.agenda["wrong"]} == {"password"}
    assert mean(expert("acebench", wrong, "small")) == 1


def test_an_episode_is_short_for_the_tiny_model():
    for episode in expert("acebench", made("acebench", "tiny", "train", 30), "tiny"):
        shown = sum(len(m.content or "") for m in episode.messages[1:])
        assert shown < 5500 and all(len(m.content or "") < 1100 for m in episode.messages), episode.task_id


@pytest.mark.data
def test_no_generated_task_is_an_official_one(shared_data):
    """Nobody and nothing of the benchmark's worlds and tasks stands in ours: not a name, a dish, a flight or a call."""
    questions, official = [], set()
    for path in sorted((shared_data / "acebench").rglob("data_agent_multi_*.json")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "question" in row:
                questions.append(row["question"])
            official |= {c.strip().strip("[]") for c in _flat(row.get("mile_stone", []))}
    assert len(questions) == 100 and len(official) > 50
    folder = Path(catalogue.__file__).parent
    worlds = [json.loads((folder / f"world_{name}.json").read_text(encoding="utf-8")) for name in ("en", "zh")]
    merchants = [w["FoodPlatform"]["merchant_list"] for w in worlds]
    flights = [flight for w in worlds for flight in w["Travel"]["flights"]]
    theirs = {name for w in worlds for name in w["MessageApi"]["user_list"]} | {n for m in merchants for n in m}
    theirs |= {dish["product"] for named in merchants for m in named.values() for dish in m["menu"]}
    theirs |= {flight[field] for flight in flights for field in ("flight_no", "origin", "destination")}
    for size in env("acebench").sizes:
        for split in SPLITS:
            for task in made("acebench", size, split, 60):
                ours = json.dumps([task.scenario, task.database.tables], ensure_ascii=False)
                words = set(re.findall(r"[\w']+", ours))
                assert not words & {name for name in theirs if " " not in name}, task.id
                assert not any(name in ours for name in theirs if " " in name), task.id
                assert task.scenario not in questions
                for a in task.actions:
                    text = f"{a.name}({', '.join(f'{k}={v!r}' for k, v in a.arguments.items())})"
                    # what has no argument, or only a message's number, says nothing of a task
                    assert len(a.arguments) < 2 or text not in official


def _flat(milestones):
    return [c for m in milestones for c in (m if isinstance(m, list) else [m])]
