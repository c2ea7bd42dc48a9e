"""The proxy under tau2-bench's own harness: its orchestrator, its user simulator, its client (litellm).

Needs a Python that has tau2-bench (see support/other_side.py) and TAU2's data.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.web.addresses import listen
from muarl_tools.checks.user.proxy.http import ProxyServer
from muarl_tools.checks.user.proxy.service import GuardingProxy, ProxySettings
from support.fake_openai import Answer, FakeOpenAI, call, completion, text
from support.other_side import TAU2, ask

SHARED = os.environ.get("MUARL_SHARED_DATA", "")
TOKEN = "t0ken-for-tests"

pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,
    pytest.mark.skipif(not (Path(SHARED) / "tau2").is_dir(), reason="TAU2's data are not here"),
]


def agent(body: dict[str, Any]) -> Answer:
    """Asks for the title, creates the task, and says so."""
    said = [m["role"] for m in body["messages"]]
    if said.count("user") < 2:
        return text("What should the title of the task be?")
    if "tool" not in said:
        made = call("create_task", {"user_id": "user_1", "title": "Important Meeting"})
        return completion(None, tool_calls=[made])
    return text("The task has been created. Is there anything else?")


def customer(body: dict[str, Any]) -> Answer:
    """Leaks that it is a model, unless it is told not to."""
    heard = body["messages"][-1]["content"]
    if "anything else" in heard:
        return text("No, thank you. ###STOP###")
    if "title" not in heard:
        return text("Please create a task for user_1.")
    if "was not sent" in body["messages"][0]["content"]:
        return text("It is called Important Meeting.")
    return text("As an AI language model I cannot know the title.")


def test_tau2s_own_harness_plays_through_the_proxy() -> None:
    with FakeOpenAI(agent) as serving, FakeOpenAI(customer) as upstream:
        proxy = GuardingProxy(ProxySettings(upstream.url))
        with ProxyServer(proxy, listen("127.0.0.1", 0), token=TOKEN, grace=1.0).start() as server:
            given = {
                "domain": "mock", "task": "create_task_1", "agent_url": serving.url, "user_url": server.address,
                "token": TOKEN,
            }  # fmt: skip
            env = {"TAU2_DATA_DIR": SHARED, "NO_PROXY": "127.0.0.1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
            out = ask(TAU2, Path(__file__).parents[1] / "support" / "tau2_side.py", json.dumps(given), env=env)
    line = next(line for line in out.splitlines() if line.startswith("RESULT "))
    found = json.loads(line.removeprefix("RESULT "))
    customers = [m["content"] for m in found["messages"] if m["role"] == "user"]
    assert customers == [
        "Please create a task for user_1.", "It is called Important Meeting.", "No, thank you. ###STOP###",
    ]  # fmt: skip
    assert "user_stop" in found["end"].lower()
    assert found["reward"] == 1.0
    assert proxy.totals.to_json()["found"] == {"leaks": 1}
    assert (proxy.totals.requests, proxy.totals.asked_again, proxy.totals.fixed) == (3, 1, 1)
    assert upstream.requests[0].body["model"] == "customer"
