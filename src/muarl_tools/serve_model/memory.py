"""Which conversations the server has had a part in, so that the next request continues from the exact ids.

A client sends its whole conversation each time, as text. Where that text contains a reply that this server gave at
this very place, the ids that were sampled then stand in the context, not what tokenising the text again would give,
and the engine finds its cache by the reply's session. What counts is what the conversation says: white space around
texts, the spelling of arguments, the ids of calls and the split of texts into parts do not matter.
"""

from __future__ import annotations

import itertools
import json
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from muarl.types.chat import Message

TOKENS = 32_000_000
"""Ids that are kept, at four bytes each; those of replies that nobody has come back to for longest go first."""
ALIKE = 64
"""Replies that are kept of those that say the same at the same place of the same conversation."""


@dataclass(slots=True, eq=False)
class ConversationPrefix:
    """A conversation up to one of our replies: its ids, the session under which the engine knows them, and the ids of
    all calls that it was given."""

    ids: array[int]
    session: str
    calls: frozenset[str]
    reasoning: str
    gone: bool = False


class Memory:
    """The replies given lately. Belongs to one event loop. ``forget`` is told of sessions that nobody can continue."""

    def __init__(self, forget: Callable[[str], None], *, tokens: int = TOKENS) -> None:
        self._forget, self._most = forget, tokens
        self._pasts: OrderedDict[bytes, list[ConversationPrefix]] = OrderedDict()
        self._tips: dict[str, ConversationPrefix] = {}
        self._numbers = itertools.count()
        self.tokens = 0

    def __len__(self) -> int:
        return sum(map(len, self._pasts.values()))

    def find(self, root: bytes, messages: Sequence[Message]) -> tuple[int, ConversationPrefix] | None:
        """The longest known beginning of a conversation: how many of its messages, and what is known.

        ``root``: what else the context depends on (policy, tools). Of several that say the same, the one whose calls
        and reasoning the client sends back, else the latest.
        """
        keys = list(_keys(root, messages))
        sent = {c.id for m in messages for c in m.tool_calls}
        for number in reversed(range(len(messages))):
            if messages[number].role != "assistant" or keys[number] not in self._pasts:
                continue
            self._pasts.move_to_end(keys[number])
            thought = (messages[number].reasoning or "").strip()
            known = self._pasts[keys[number]]
            best = max(known, key=lambda p: (len(p.calls & sent), p.reasoning == thought))  # the latest stand first
            return number + 1, best
        return None

    def session(self, past: ConversationPrefix | None) -> str:
        """The session to sample in: that of the past, or a new one where another reply has gone on from it."""
        if past is not None and self._tips.get(past.session) is past:
            del self._tips[past.session]  # until the reply is there, nobody else continues in it
            return past.session
        return f"conversation-{next(self._numbers)}"

    def back(self, past: ConversationPrefix | None, session: str) -> None:
        """No reply came of it: the session is the past's again, or nobody's."""
        if past is not None and past.session == session and not past.gone:
            self._tips[session] = past
        else:
            self._forget(session)

    def keep(self, root: bytes, messages: Sequence[Message], ids: Sequence[int], session: str) -> None:
        """A conversation whose last message is a reply of ours; ``ids``: all of it, to the reply's last id."""
        key = list(_keys(root, messages))[-1]
        calls = frozenset(c.id for m in messages for c in m.tool_calls)
        past = ConversationPrefix(array("i", ids), session, calls, (messages[-1].reasoning or "").strip())
        known = self._pasts.setdefault(key, [])
        self._pasts.move_to_end(key)
        for same in [p for p in known if p.ids == past.ids] or known[ALIKE - 1 :]:
            known.remove(same)
            self._drop(same)
        known.insert(0, past)
        self._tips[session] = past
        self.tokens += len(past.ids)
        while self.tokens > self._most and self._pasts:
            _, gone = self._pasts.popitem(last=False)
            for each in gone:
                self._drop(each)

    def _drop(self, past: ConversationPrefix) -> None:
        self.tokens -= len(past.ids)
        past.gone = True
        if self._tips.get(past.session) is past:
            del self._tips[past.session]
            self._forget(past.session)


def _keys(root: bytes, messages: Sequence[Message]) -> Iterator[bytes]:
    """A digest for each message of what was said up to and with it."""
    key = root
    for message in messages:
        said: list[object] = [message.role, (message.content or "")]
        if message.role == "assistant":
            said[1] = (message.content or "").strip()
            said += [[c.name, c.raw if c.invalid else _arguments(c.arguments)] for c in message.tool_calls]
        key = sha256(key + json.dumps(said).encode()).digest()
        yield key


def _arguments(arguments: object) -> str:
    return json.dumps(arguments, sort_keys=True)
