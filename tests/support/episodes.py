"""Episodes of any kind, drawn by Hypothesis: every role, both sides' tools, broken calls, tokens or none."""

from __future__ import annotations

from hypothesis import strategies as st

from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, Usage, Verdict

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.sampled_from(["look", "cancel", "c1", "c2"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
CALLS = st.builds(
    ToolCall,
    id=NAMES | st.just(""),
    name=NAMES,
    arguments=st.dictionaries(TEXTS, VALUES, max_size=2),
    requestor=st.sampled_from(["assistant", "user"]),
) | st.builds(lambda raw: ToolCall("c9", "", invalid="not JSON", raw=raw), TEXTS)
SIDES = st.sampled_from(["assistant", "user"])
MESSAGES = st.one_of(
    st.builds(
        Message, role=st.just("user"), content=st.none() | TEXTS, tool_calls=st.lists(CALLS, max_size=2).map(tuple)
    ),
    st.builds(
        Message,
        role=st.just("assistant"),
        content=st.none() | TEXTS,
        tool_calls=st.lists(CALLS, max_size=2).map(tuple),
        reasoning=st.none() | TEXTS,
    ),
    st.builds(
        Message,
        role=st.just("tool"),
        content=st.none() | TEXTS,
        tool_call_id=st.none() | NAMES,
        name=st.none() | NAMES,
        requestor=SIDES,
        error=st.booleans(),
    ),
    st.builds(Message, role=st.just("system"), content=TEXTS),
)
TOOLS = (ToolSpec("look", "To look.", {"type": "object", "properties": {"order_id": {"type": "string"}}}),)


@st.composite
def episodes(draw: st.DrawFn) -> Episode:
    """An episode; where it has tokens, each message of the agent has its span."""
    trace = TokenTrace() if draw(st.booleans()) else None
    turns = []
    for message in draw(st.lists(MESSAGES, max_size=6)):
        span = version = None
        if trace is not None and message.role == "assistant":
            version = draw(st.integers(0, 3))
            span = trace.append_sampled([5, 6, 7], [-0.5, -1.25, 0.0], version)
        elif trace is not None:
            trace.append_given([1, 2])
        turns.append(Turn(message, draw(st.sampled_from([0.0, 0.25])), span, version))
    verdict = draw(st.none() | st.builds(lambda r: Verdict(r, {"DB": r}, {"calls": 1.0}), st.sampled_from([0.0, 1.0])))
    told = {"system": "Be kind.", "tools": TOOLS} if draw(st.booleans()) else {}
    return Episode(
        draw(TEXTS), "task-1", "retail", turns, draw(st.sampled_from(StopReason)), draw(st.integers(0, 9)),
        group=draw(st.none() | TEXTS), agent=draw(st.sampled_from(["", "endpoint:m"])), user="agenda", tokens=trace,
        verdict=verdict, tags=draw(st.dictionaries(TEXTS, VALUES, max_size=2)), timings={"agent": 0.5},
        agent_usage=Usage(10, 3, 1, 0, 0.5), error=draw(st.none() | TEXTS), **told,
    )  # fmt: skip


UNBROKEN = {"violated_policy": 0.0, "violated_communication": 0.0, "violated_safety": 0.0}
"""The audit of an episode that broke no rule, as rewards in layers read it, for verdicts that tests make up."""
