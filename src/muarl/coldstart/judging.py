"""The judge's answers about whole conversations, kept in a file so that none is paid for twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.basics.event_loop import event_loop
from muarl.basics.files import append_line, drop_broken_tail, read_lines
from muarl.rewards.judge import Judge
from muarl.types.episode import Episode

EXPECTED = "The agent followed the policy that it was given, and everything it told the user is borne out by its tools."


class JudgedConversations:
    """What a judge has said of conversations. ``path``: the file, a line for each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        drop_broken_tail(path)
        self._known = {row["id"]: bool(row["ok"]) for row in read_lines(path)}

    def ask(self, judge: Judge | None, episodes: Sequence[Episode]) -> dict[str, bool]:
        """Whether each conversation is in keeping with its policy, by id; all asked at once, those known not again.

        Without a judge all are. MuarlError if the judge fails; what it had answered is kept.
        """
        if judge is None:
            return {e.id: True for e in episodes}
        missing = [e for e in episodes if e.id not in self._known]
        if missing:
            with event_loop() as loop:
                loop.run(self._ask(judge, missing))
        return {e.id: self._known[e.id] for e in episodes}

    async def _ask(self, judge: Judge, episodes: Sequence[Episode]) -> None:
        async def one(episode: Episode) -> None:
            answer = await judge(episode.messages, [f"The policy:\n{episode.system}\n\n{EXPECTED}"])
            append_line(self._path, {"id": episode.id, "ok": answer})
            self._known[episode.id] = answer

        found = await asyncio.gather(*map(one, episodes), return_exceptions=True)
        for failure in found:
            if isinstance(failure, InfrastructureError):
                raise MuarlError(f"coldstart.judge: {failure}") from None
            if isinstance(failure, BaseException):
                raise failure
