"""Sampled ids become a reply, piece by piece: reasoning, text, tool calls. All at once is the same work.

What the pieces add up to is what ``ChatFormat.parse`` makes of the ids, with two things that clients of the OpenAI API
need otherwise: a call that cannot be read goes out as text, exactly as the model wrote it (clients parse arguments
without asking), and where no tools were offered, so do all calls. White space around the text is dropped, so what may
turn out to be its end is held back; a character is sent whole.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import numpy as np

from muarl.chat_formats.base import ChatFormat
from muarl.inference.base import FinishReason
from muarl.types.chat import Message, ToolCall
from muarl.types.toolcalls import parse_call


@dataclass(frozen=True, slots=True)
class Piece:
    """What is new of a reply: some text of its reasoning or content, or a whole call and its number in the reply."""

    kind: Literal["reasoning", "content", "call"]
    text: str = ""
    call: ToolCall | None = None
    number: int = 0


class ReplyReader:
    """Reads one reply.

    ``context``: the ids before it; the calls' ids follow from them and the reply, so that they are unlike any others.
    ``given``: ids that the reply is made to begin with. ``stop``: strings that end the text, and are not part of it.
    ``calls``: whether tools were offered; ``one_call``: the reply ends with its first call.

    ``ids``: those of the reply so far, ``given`` ones included. ``done``: no other belongs to it. ``cut``: a stop
    string was met, so that the ids say more than the text. ``reasoned``: how many ids are reasoning.
    """

    def __init__(
        self,
        chat: ChatFormat,
        context: Sequence[int],
        *,
        given: Sequence[int] = (),
        stop: Sequence[str] = (),
        calls: bool = True,
        one_call: bool = False,
    ) -> None:
        self._chat, self._stop, self._reads_calls, self._one_call = chat, tuple(stop), calls, one_call
        markers = chat.markers
        if markers is None:
            raise ValueError(f"replies of the chat format {chat.name} are read whole")
        self._think, self._thought = markers.think, markers.thought
        self._opener, self._closer = markers.call, markers.called
        self._digest = sha256(np.asarray(context, dtype="<u4").tobytes())
        self.ends_early = one_call or bool(stop)
        """Whether the reply may end before the model ends it."""
        self._text = _Text("content", self._stop)
        self._state: Literal["begin", "reasoning", "held", "content", "call", "between"] = "begin"
        self._held: list[int] = []  # since a <tool_call> within reasoning; or the block of the call being read
        self.ids: list[int] = []
        self.calls: list[ToolCall] = []
        self._found: list[ToolCall] = []  # those that cannot be read, too
        self._unread = 0  # characters of those at the end of the content
        self.content = ""
        self.reasoning = ""
        self.done = self.cut = False
        self.reasoned = 0
        self.finish: FinishReason = "stop"
        self.feed(given)

    def feed(self, ids: Sequence[int]) -> list[Piece]:
        """What these further ids bring; ids after the reply's end are ignored."""
        pieces: list[Piece] = []
        for i in ids:
            if self.done:
                break
            self.ids.append(i)
            self._digest.update(i.to_bytes(4, "little"))
            if i in self._chat.stop_ids:
                self._end(pieces)
            else:
                self._take(i, pieces)
        return self._sent(pieces)

    def end(self, finish: FinishReason) -> list[Piece]:
        """The reply is over, because the model ended it or ("length") because it had to."""
        pieces: list[Piece] = []
        if not self.done:
            self.finish = finish
            self._end(pieces)
        return self._sent(pieces)

    @property
    def finish_reason(self) -> Literal["stop", "length", "tool_calls"]:
        """OpenAI's word for how the reply ended."""
        if self.finish == "length":
            return "length"
        return "tool_calls" if self.calls else "stop"

    @property
    def with_unread(self) -> Message | None:
        """The reply with its unreadable calls as calls, as muarl's own agents have it; None where there are none."""
        if not self._unread or self.cut:
            return None
        return Message("assistant", self.content[: -self._unread] or None, tuple(self._found))

    # ---- one id

    def _take(self, i: int, pieces: list[Piece]) -> None:
        state = self._state
        if state == "begin" and i == self._think and self._text.blank():
            self._state, self._text = "reasoning", _Text("reasoning")
            self.reasoned += 1
        elif state in ("begin", "content"):
            self._take_text(i, pieces)
        elif state == "reasoning":
            self.reasoned += 1
            if i == self._thought:
                self._end_reasoning(pieces)
            elif i == self._opener and self._reads_calls:
                # Reasoning, if it still closes; else it ends here. Only the rest of the reply can tell.
                self._state, self._held = "held", [i]
            else:
                pieces += self._text.add(self._chat.tokenizer.piece(i))
        elif state == "held":
            self._held.append(i)
            if i == self._thought:
                self.reasoned += len(self._held) - 1
                for held in self._held[:-1]:
                    pieces += self._text.add(self._chat.tokenizer.piece(held))
                self._end_reasoning(pieces)
        elif state == "call":
            self._held.append(i)
            if i == self._closer:
                self._end_call(pieces, closed=True)
        elif i == self._opener:  # text between calls belongs to nothing
            self._state, self._held = "call", [i]

    def _take_text(self, i: int, pieces: list[Piece]) -> None:
        if i == self._opener and self._reads_calls:
            pieces += self._text.end()
            self._check_stop()
            if not self.done:
                self._state, self._held = "call", [i]
            return
        pieces += self._text.add(self._chat.tokenizer.piece(i))
        self._check_stop()

    def _check_stop(self) -> None:
        if self._text.stopped:
            self.done = self.cut = True

    def _end_reasoning(self, pieces: list[Piece]) -> None:
        pieces += self._text.end()
        self._state, self._text, self._held = "content", _Text("content", self._stop), []

    def _end_call(self, pieces: list[Piece], *, closed: bool) -> None:
        block, self._held, self._state = self._held, [], "between"
        text = self._chat.text(block[1 : len(block) - closed]).strip()
        call = parse_call(text, self._call_id(), closed=closed)
        self._found.append(call)
        if call.invalid is None:
            pieces.append(Piece("call", call=call, number=len(self.calls)))
            self.calls.append(call)
            if self._one_call:
                self.done = True
        else:
            written = self._chat.text(block).strip()
            before = self.content or any(p.kind == "content" for p in pieces)
            pieces.append(Piece("content", f"\n{written}" if before else written))
            self._unread += len(pieces[-1].text)

    def _call_id(self) -> str:
        """Unlike that of any other call, and the same whenever the same ids are read."""
        digest = self._digest.copy()
        digest.update(len(self.calls).to_bytes(4, "little"))
        return "call_" + digest.hexdigest()[:24]

    def _end(self, pieces: list[Piece]) -> None:
        if self._state == "held":  # the reasoning never closed: it ended where the first call began
            held, after = self._held, self.ids[-1:] if self.ids[-1] in self._chat.stop_ids else []
            del self.ids[len(self.ids) - len(held) - len(after) :]
            self._end_reasoning(pieces)
            for i in held:
                self.ids.append(i)
                self._take(i, pieces)
                if self.done:
                    return
            self.ids += after
        self.done = True
        if self._state == "call":
            self._end_call(pieces, closed=False)
        elif self._state != "between":
            pieces += self._text.end()
            self.cut = self._text.stopped

    def _sent(self, pieces: list[Piece]) -> list[Piece]:
        out = _joined(pieces)
        for piece in out:
            if piece.kind == "content":
                self.content += piece.text
            elif piece.kind == "reasoning":
                self.reasoning += piece.text
        return out


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Texts that follow each other, as one."""
    out: list[Piece] = []
    for piece in pieces:
        if out and piece.call is None and piece.kind == out[-1].kind:
            out[-1] = Piece(piece.kind, out[-1].text + piece.text)
        else:
            out.append(piece)
    return out


class TextReader:
    """Reads a completion that is nothing but text, as ``ReplyReader`` reads a reply. The id that ends it is no part of
    the text; white space is."""

    calls: tuple[ToolCall, ...] = ()
    with_unread: Message | None = None
    reasoning = ""
    reasoned = 0

    def __init__(self, chat: ChatFormat, stop_ids: Sequence[int], stop: Sequence[str] = ()) -> None:
        self._tokenizer, self._stop_ids = chat.tokenizer, frozenset(stop_ids)
        self._text = _Text("content", stop, strip=False)
        self.ends_early = bool(stop)
        self.ids: list[int] = []
        self.content = ""
        self.done = self.cut = False
        self.finish_reason: Literal["stop", "length", "tool_calls"] = "stop"

    def feed(self, ids: Sequence[int]) -> list[Piece]:
        """What these further ids bring; ids after the end are ignored."""
        pieces: list[Piece] = []
        for i in ids:
            if self.done:
                break
            self.ids.append(i)
            self.done = i in self._stop_ids
            pieces += self._text.end() if self.done else self._text.add(self._tokenizer.piece(i))
            self.done = self.done or self._text.stopped
        self.content += "".join(p.text for p in pieces)
        return _joined(pieces)

    def end(self, finish: FinishReason) -> list[Piece]:
        """The completion is over."""
        pieces = [] if self.done else self._text.end()
        if not self.done:
            self.done, self.finish_reason = True, finish
        self.content += "".join(p.text for p in pieces)
        return pieces


class _Text:
    """Text that comes in bytes and goes out in whole characters, up to the first stop string, stripped if wanted."""

    def __init__(self, kind: Literal["reasoning", "content"], stop: Sequence[str] = (), *, strip: bool = True) -> None:
        self._kind, self._stop, self._strip = kind, stop, strip
        self._longest = max(map(len, stop), default=0)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""  # not sent yet
        self._begun = False
        self.stopped = False

    def add(self, data: bytes) -> list[Piece]:
        """What can go out now that these bytes came."""
        return self._out(self._decoder.decode(data), last=False)

    def end(self) -> list[Piece]:
        """What is left to go out when nothing more comes."""
        return self._out(self._decoder.decode(b"", final=True), last=True)

    def blank(self) -> bool:
        """Whether nothing but white space has come. Half a character, if there is one, stays half."""
        self._rest += self._decoder.decode(b"", final=True)
        return not self._begun and not self._rest.strip()

    def _out(self, new: str, *, last: bool) -> list[Piece]:
        if self.stopped:
            return []
        self._rest += new
        if self._strip and not self._begun:
            self._rest = self._rest.lstrip()
            self._begun = bool(self._rest)
        found = [at for at in (self._rest.find(s) for s in self._stop) if at >= 0]
        if found:
            self._rest, self.stopped, last = self._rest[: min(found)], True, True
        hold = len(self._rest) if last else self._safe()
        ready = self._rest[:hold].rstrip() if self._strip else self._rest[:hold]
        self._rest = "" if last else self._rest[len(ready) :]
        return [Piece(self._kind, ready)] if ready else []

    def _safe(self) -> int:
        """How many characters cannot be part of a stop string that is still to come whole."""
        for at in range(max(0, len(self._rest) - self._longest + 1), len(self._rest)):
            if any(s.startswith(self._rest[at:]) for s in self._stop):
                return at
        return len(self._rest)
