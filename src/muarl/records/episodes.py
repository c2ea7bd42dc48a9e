"""Episodes of muarl among other conversations."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from muarl.basics.errors import DataError
from muarl.records.conversation import Format, RecordedConversation
from muarl.records.rows import PlacedRow
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason


class EpisodeConversation(RecordedConversation):
    """A row that ``types.episode.write_episodes`` wrote."""

    format = "episode"

    @cached_property
    def episode(self) -> Episode:
        """All of it. DataError if it is malformed or of another version."""
        try:
            return Episode.from_json(self.value)
        except (ValueError, TypeError, AttributeError) as problem:
            raise DataError(f"{self.place}: this row is no episode: {problem}") from None

    @property
    def reward(self) -> float | None:
        """The verdict's; None if it was not scored."""
        return None if self.episode.verdict is None else self.episode.verdict.reward

    @property
    def stop(self) -> StopReason:
        """How it ended."""
        return self.episode.stop

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """What was said and done."""
        return tuple(self.episode.messages)


class Episodes(Format):
    """Rows with turns."""

    def of_row(self, row: PlacedRow) -> Iterable[RecordedConversation] | None:
        """The episode of a row that is one."""
        if "turns" not in row.value or "messages" in row.value:
            return None
        return (EpisodeConversation(row, self.left_out),)
