"""ATIF trajectories: ours come back as they went out, others' are read, and Harbor's own validator takes ours."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from muarl.basics.errors import DataError
from muarl.records import atif
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, Verdict
from support.episodes import TOOLS, episodes
from support.other_side import HARBOR, ask


def small() -> Episode:
    """A conversation with calls of both sides, and what the sampler drew."""
    trace = TokenTrace()
    trace.append_given([1, 2, 3])
    span = trace.append_sampled([4, 5], [-0.5, -0.25], 7)
    call, own = ToolCall("c1", "look", {"order_id": "#W1"}), ToolCall("u1", "restart", {}, "user")
    turns = [
        Turn(Message("user", "Hi")),
        Turn(Message("assistant", None, (call,), reasoning="Look first."), 0.5, span, 7),
        Turn(Message("tool", "Error: no such order", tool_call_id="c1", name="look", error=True)),
        Turn(Message("user", None, (own,))),
        Turn(Message("tool", "ok", tool_call_id="u1", name="restart", requestor="user")),
    ]
    return Episode(
        "e1", "t1", "retail", turns, StopReason.USER_STOP, agent="m", tokens=trace, verdict=Verdict(1.0, {"DB": 1.0})
    )


def test_an_episode_as_a_trajectory() -> None:
    made = atif.trajectory_of(small(), "Be kind.", TOOLS)
    system, user, agent, device = made["steps"]
    assert made["schema_version"] == "ATIF-v1.8" and made["agent"]["model_name"] == "m"
    assert made["agent"]["tool_definitions"][0]["function"]["name"] == "look"
    assert [s["step_id"] for s in made["steps"]] == [1, 2, 3, 4]
    assert (system["source"], system["message"], user["message"]) == ("system", "Be kind.", "Hi")
    assert agent["tool_calls"] == [{"tool_call_id": "c1", "function_name": "look", "arguments": {"order_id": "#W1"}}]
    assert agent["reasoning_content"] == "Look first."
    assert agent["metrics"] == {
        "prompt_tokens": 3, "completion_tokens": 2, "completion_token_ids": [4, 5], "logprobs": [-0.5, -0.25],
    }  # fmt: skip
    (result,) = agent["observation"]["results"]
    assert (result["source_call_id"], result["content"]) == ("c1", "Error: no such order")
    assert "tool_calls" not in device, "only an agent's step may have calls"
    assert "source_call_id" not in device["observation"]["results"][0]
    assert made["final_metrics"]["extra"] == {"reward": 1.0}


@given(episodes())
def test_a_trajectory_of_ours_gives_back_the_very_episode(episode: Episode) -> None:
    made = json.loads(json.dumps(atif.trajectory_of(episode, "Be kind.", TOOLS)))
    assert atif.episode_of(made) == episode


def foreign(**changed: Any) -> dict[str, Any]:
    """A trajectory as others write them."""
    call = {"tool_call_id": "c1", "function_name": "look", "arguments": {"order_id": "#W1"}}
    text = lambda said: {"type": "text", "text": said}  # noqa: E731
    image = {"type": "image", "source": {"media_type": "image/png", "path": "x.png"}}
    steps = [
        {"step_id": 1, "source": "user", "message": [text("Look at"), image, text("this")]},
        {
            "step_id": 2,
            "source": "agent",
            "message": "One moment.",
            "tool_calls": [call],
            "observation": {"results": [{"source_call_id": "c1", "content": "pending"}]},
        },
        {"step_id": 3, "source": "agent", "message": "It is pending.", "reasoning_content": "Say so."},
    ]  # fmt: skip
    agent = {"name": "other", "version": "2", "tool_definitions": [t.to_openai() for t in TOOLS]}
    return {"schema_version": "ATIF-v1.6", "session_id": "s1", "agent": agent, "steps": steps, **changed}


def test_a_trajectory_of_others_is_read_as_messages() -> None:
    lost: Counter[str] = Counter()
    row = atif.row_of(foreign(subagent_trajectories=[{}]), "a.json", lost)
    assert row["id"] == "s1" and row["tools"][0]["function"]["name"] == "look"
    assert row["messages"] == [
        {"role": "user", "content": "Look at\nthis"},
        {
            "role": "assistant",
            "content": "One moment.",
            "tool_calls": [{"id": "c1", "name": "look", "arguments": {"order_id": "#W1"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "pending", "name": "look"},
        {"role": "assistant", "content": "It is pending.", "reasoning": "Say so."},
    ]
    assert lost == {"parts of type image": 1, "embedded trajectories of subagents": 1}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"schema_version": "ATIF-v9.0"}, r"a\.json: schema_version 'ATIF-v9\.0' is not known; ATIF-v1\.0 to"),
        ({"steps": []}, r"a\.json: steps must be a list with at least one step"),
        ({"steps": [{"source": "robot"}]}, r"a\.json, steps\[0\]: source must be one of system, user, agent"),
        ({"steps": [{"source": "agent", "message": "", "tool_calls": [{}]}]}, r"tool_calls\[0\]: function_name must"),
        ({"extra": {"muarl": {"schema": 1}}}, r"extra\.muarl says that muarl wrote it"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_named(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        atif.row_of(foreign(**changed), "a.json")


VALIDATE = """
import json, sys
from harbor.models.trajectories import Trajectory
from harbor.utils.trajectory_validator import TrajectoryValidator
for line in open(sys.argv[1]):
    validator = TrajectoryValidator()
    given = json.loads(line)
    print("valid" if validator.validate(given) else validator.errors)
    kept = Trajectory(**given).to_json_dict(exclude_none=False)
    assert all(kept[name] == given[name] for name in ("session_id", "extra", "schema_version")), kept
"""


def test_harbors_own_validator_takes_ours(tmp_path: Path) -> None:
    drawn: list[Episode] = [small()]

    @given(episodes())
    def collect(episode: Episode) -> None:
        drawn.append(episode)

    collect()
    lines = [json.dumps(atif.trajectory_of(e, "Be kind.", TOOLS)) for e in drawn]
    (tmp_path / "drawn.jsonl").write_text("\n".join(lines) + "\n")
    verdicts = ask(HARBOR, "-c", VALIDATE, tmp_path / "drawn.jsonl").splitlines()
    assert len(verdicts) == len(drawn) > 50
    assert set(verdicts) == {"valid"}
