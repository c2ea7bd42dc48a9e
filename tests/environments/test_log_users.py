"""A model's account of a logged customer is taken only if nothing in it is made up."""

from __future__ import annotations

import json

import pytest

from muarl.basics.errors import MuarlError
from muarl.domains.tasks import Action, Task
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.environments.log_users import TRIES, read_story, retell
from muarl.environments.task_files import FiledTask
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
