"""The scripted expert as an agent; what it says and does is its service's (domains/kit/test_expert.py)."""

from __future__ import annotations

from muarl.agents.expert import ExpertAgent
from muarl.chat import Message
from muarl.domains.error_profile import SLOPPY


def test_names_of_agents() -> None:
    assert ExpertAgent().name == "expert" and ExpertAgent(SLOPPY).name == "expert with errors"
    session = ExpertAgent().open("", (), seed=0, session="s")
    assert session.tokens is None
    session.close()


async def test_without_an_environments_it_is_retails() -> None:
    session = ExpertAgent().open("", (), seed=0, session="s")
    turn = await session.act([Message("user", "I want to cancel order #W1111111. I am Mia Berg, 12345.")])
    (call,) = turn.message.tool_calls
    assert (call.name, call.arguments["zip"]) == ("find_user_id_by_name_zip", "12345")
