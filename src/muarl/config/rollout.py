"""The section of a run configuration about episodes: how long they may become, and how many are played at once."""

from __future__ import annotations

from pydantic import Field

from muarl.config.section import Positive, Section


class RolloutConfig(Section):
    """How episodes are played, by every command: in training, demonstrations, evaluation, chat and red teaming."""

    max_turns: Positive = Field(
        30,
        description="Maximum agent turns in an episode; then it ends with `max_turns`. At least 100 on TAU2's own "
        "tasks, which are long; BFCL and ACEBench use their own limits.",
    )
    tokens_per_turn: Positive = Field(256, description="Maximum tokens of one agent turn; then `turn_length`.")
    max_tool_errors: Positive = Field(10, description="Tool errors after which an episode ends with `tool_errors`.")
    concurrency: Positive = Field(256, description="Maximum concurrent episodes.")
