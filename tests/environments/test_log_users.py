"""A model's account of a logged customer is taken only if nothing in it is made up."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import MuarlError
from muarl.cli.main import app
from muarl.domains.tasks import Action, Task
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.environments.log_users import TRIES, own_lines, read_story, retell
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.environments.registry import find
from muarl.environments.task_files import FiledTask, read_tasks
from muarl.types.chat import to_openai
from support.fake_openai import FakeOpenAI, status, text

LINES = ("I am Ana Ruiz, zip 80214.", "Cancel order #W1234567, please.", "Yes.")
ACTIONS = (Action("cancel_pending_order", {"order_id": "#W1234567", "reason": "no longer needed"}),)
GOOD = "You are Ana Ruiz (zip 80214). You call to cancel order #W1234567. You are polite and brief."


def filed() -> FiledTask:
    task = Task("log-1", "retail", "the lines", ACTIONS, agenda={"lines": LINES})
    return FiledTask(task)


def endpoint(server: FakeOpenAI) -> Endpoint:
    return Endpoint(EndpointSettings(model="m", base_url=server.url, backoff=0.01, attempts=2))


async def test_a_true_story_becomes_the_scenario() -> None:
    with FakeOpenAI([text(json.dumps({"story": GOOD}))]) as server:
        told = (await retell([filed()], endpoint(server)))[0]
    assert GOOD in told.task.scenario and LINES[1] not in told.task.scenario and not told.notes
    assert "cancel pending order: order id #W1234567" in told.task.scenario, "the goal stays as it was"
    assert told.task.agenda == {"lines": LINES}


async def test_a_made_up_fact_is_sent_back_and_then_done_without() -> None:
    made_up = text(json.dumps({"story": GOOD.replace("#W1234567", "#W7654321")}))
    with FakeOpenAI([made_up] * TRIES) as server:
        told = (await retell([filed()], endpoint(server)))[0]
        assert "'#W7654321' was said by nobody" in json.dumps(server.bodies[1], ensure_ascii=False)
        assert len(server.bodies) == TRIES
    assert told.task.scenario == "the lines" and "said by nobody" in told.notes[0]


async def test_an_endpoint_that_fails_ends_it_with_its_name() -> None:
    with FakeOpenAI([status(500)]) as server:
        with pytest.raises(MuarlError, match="--by: endpoint m"):
            await retell([filed()], endpoint(server))


async def test_where_a_request_fails_the_lines_stay_and_the_others_are_described() -> None:
    good = text(json.dumps({"story": GOOD}))
    with FakeOpenAI([good, status(400, message="filtered"), good]) as server:
        one_by_one = Endpoint(replace(endpoint(server).config, concurrency=1))
        told = await retell([filed()] * 3, one_by_one)
    assert [GOOD in one.task.scenario for one in told] == [True, False, True]
    assert told[1].task.scenario == "the lines" and "the customer's own lines, since the request" in told[1].notes[0]
    (why,) = own_lines(told)
    assert why.startswith("the request failed: endpoint m") and "filtered" in why


async def test_a_key_that_is_refused_on_the_way_keeps_what_was_described_and_is_not_tried_for_all() -> None:
    with FakeOpenAI([text(json.dumps({"story": GOOD})), status(401)]) as server:
        told = await retell([filed()] * 9, Endpoint(replace(endpoint(server).config, concurrency=1)))
        assert len(server.bodies) == 2
    assert not told[0].notes and len(own_lines(told)) == 8


def write_log(path: Path) -> None:
    """Three conversations of the scripted expert's with customers, as the chat API has them."""
    shop = find("retail-generated")
    place = shop.place("small")
    played = play_in(Places([place]), place.expert_agent(), place.users(), shop.make_tasks("train", 3), 1, seed=0)
    rows = [[to_openai(m) for m in episode.messages] for episode in asyncio.run(played).episodes]
    path.write_text("".join(json.dumps({"messages": row}) + "\n" for row in rows))


def test_the_command_keeps_what_was_paid_and_says_what_is_missing(tmp_path: Path) -> None:
    log, out = tmp_path / "live.jsonl", tmp_path / "tasks.jsonl"
    write_log(log)
    with FakeOpenAI([text(json.dumps({"story": "You are polite."})), status(400, message="filtered")]) as server:
        words = ["tasks", "from-log", str(log), "--by", f"endpoint:m@{server.url}"]
        folder = CliRunner().invoke(app, [*words, "--out", str(tmp_path)])
        assert folder.exit_code == 2 and "--out" in folder.stderr and "is a folder" in folder.stderr.replace("\n", " ")
        assert not server.bodies, "nothing is paid for"
        done = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "m wrote 1 scenarios" in done.output and "2 keep the customer's own lines" in done.output
    assert sorted("You are polite." in one.task.scenario for one in read_tasks(out)) == [False, False, True]
    assert len(own_lines(read_tasks(out))) == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("You are Ana.", "no JSON"),
        ("[1]", 'no text in "story"'),
        ('{"story": "  "}', 'no text in "story"'),
        (json.dumps({"story": "Write to ana@example.com."}), "'ana@example.com' was said by nobody"),
        (json.dumps({"story": "You are 31."}), "'31' was said by nobody"),
    ],
)
def test_answers_that_are_refused(answer: str, said: str) -> None:
    assert said in read_story(answer, LINES, ACTIONS)[1]


def test_fences_and_punctuation_do_no_harm() -> None:
    assert read_story(f"```json\n{json.dumps({'story': GOOD})}\n```", LINES, ACTIONS) == (GOOD, "")
    assert read_story(json.dumps({"story": "It is #w1234567."}), LINES, ACTIONS)[1] == ""
