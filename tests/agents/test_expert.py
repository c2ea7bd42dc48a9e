"""The scripted expert as an agent; what it says and does is its service's (domains/kit/test_expert.py)."""

from __future__ import annotations

from muarl.agents.expert import ExpertAgent
from muarl.domains.scripted_expert import SLOPPY
from muarl.environments.registry import find
from muarl.types.chat import Message

RETAIL = find("retail-generated")


def test_names_of_agents() -> None:
    assert (
        ExpertAgent(make=RETAIL.needed_expert()).name == "expert"
        and ExpertAgent(SLOPPY, make=RETAIL.needed_expert()).name == "expert with errors"
    )
    session = ExpertAgent(make=RETAIL.needed_expert()).open("", (), seed=0, session="s")
    assert session.tokens is None
    session.close()


async def test_it_speaks_and_calls_as_its_environments_expert() -> None:
    session = ExpertAgent(make=RETAIL.needed_expert()).open("", (), seed=0, session="s")
    turn = await session.act([Message("user", "I want to cancel order #W1111111. I am Mia Berg, 12345.")])
    (call,) = turn.message.tool_calls
    assert (call.name, call.arguments["zip"]) == ("find_user_id_by_name_zip", "12345")
