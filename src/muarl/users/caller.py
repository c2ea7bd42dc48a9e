"""What callers with an agenda share, whatever they call about: telling, agreeing, changing their mind, losing patience.

A domain's caller (``agenda*.py``) says what is its own: how its wishes sound, and what it hears in an agent's words.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

from muarl.chat import Message
from muarl.domains.base import Task
from muarl.errors import ConfigError
from muarl.users.base import UserTurn

PATIENCE: Mapping[str, int] = {"terse": 4, "chatty": 5, "confused": 5, "impatient": 3}
"""How many useless turns each persona bears before it gives up."""

Request = dict[str, Any]
"""One request of an agenda.

``kind``; ``wish``, its slots; ``then`` and ``fallback``, what the wish becomes on hearing a proposal, and on bad news
({"drop": True}: nothing; None: it stays); ``answer``, what settles a question; ``unknown``, slots that the caller does
not remember; ``told``, whether it has been brought up."""

Choices = str | Sequence[str] | Mapping[str, Sequence[str]]
"""What is said: one sentence, one of several, or one of those of a persona."""


class Phrases(Protocol):
    """A domain's stock phrases (a module will do). Those with ``{}`` take a wish."""

    @property
    def OPENINGS(self) -> Choices: ...
    @property
    def ALSO(self) -> Choices: ...
    @property
    def STILL(self) -> Choices: ...
    @property
    def CORRECTIONS(self) -> Choices: ...
    @property
    def YES(self) -> Choices: ...
    @property
    def DROPS(self) -> Choices: ...
    @property
    def ENDINGS(self) -> Choices: ...
    @property
    def GIVES_UP(self) -> Choices: ...


def agenda_of(task: Task) -> Mapping[str, Any]:
    """What a task's caller wants. ConfigError if the task was not made for callers with an agenda."""
    if task.agenda is None:
        raise ConfigError(f"task {task.id} has no agenda: an agenda user plays generated tasks only; use an LLM user")
    return task.agenda


class Caller:
    """A user with an agenda and no language model. Deterministic in (task, seed, what it hears).

    It reads the agent's words only, never the world. A subclass gives ``words``, and writes ``_answer`` and ``_say``,
    ``_conflicts``, ``_say_change`` and ``_say_instead`` as far as it gets there. What it says depends on the order in
    which it draws from its random numbers, so that a change of that order changes every conversation.
    """

    words: ClassVar[Phrases]
    reveals: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys(PATIENCE, ())
    """The slots that each persona tells at once, and "identity" where it also says who it is."""
    template_first: ClassVar[Literal["never", "later", "always"]] = "never"
    """Whether, bringing up a wish, the template is drawn before the clause: never, once the opening is past, always."""
    restated: ClassVar[Choices] = "I want to {}."
    """How it says its wish again to an agent that makes no sense."""
    counts_done: ClassVar[bool] = False
    """Whether it counts what it agreed to and has not been told is done. Others, once they have agreed to something,
    take every report for one about that."""

    def __init__(
        self,
        task: Task,
        *,
        seed: int,
        persona: str | None = None,
        agenda: Mapping[str, Any] | None = None,
        label: str = "agenda",
    ) -> None:
        """``agenda``: None for the task's own. ``label``: what sets its random numbers apart from other domains'."""
        self._agenda = agenda_of(task) if agenda is None else agenda
        self._persona: str = persona or self._agenda["persona"]
        self._rng = random.Random(f"{label} {task.id} {seed}")
        self._open: list[Request] = [dict(r, told=False) for r in self._agenda["requests"]]
        self._confirmed: list[Request] = []
        self._awaited = 0  # how many of them have not been reported done, for those who count
        self._patience = PATIENCE[self._persona]
        self._started = False
        self._asked: set[str] = set()

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Answer the last message of the conversation; the first reply is the opening, whatever the greeting says."""
        text = conversation[-1].content or "" if conversation else ""
        said = self._answer(text) if self._started else self._opening()
        self._started = True
        return UserTurn(Message("user", said))

    def _answer(self, text: str) -> str:
        """What is said to an agent's message."""
        raise NotImplementedError

    def _pick(self, choices: Choices) -> str:
        """One of this persona's choices."""
        if isinstance(choices, Mapping):
            choices = choices[self._persona]
        return choices if isinstance(choices, str) else self._choose(choices)

    def _choose(self, several: Sequence[str]) -> str:
        return self._rng.choice(several)

    # what is told

    def _opening(self) -> str:
        who = "identity" in self.reveals[self._persona]
        return " ".join([*self._first_wishes(), *([self._identity()] if who else [])])

    def _first_wishes(self) -> list[str]:
        """What it brings up at the start: its first wish, or all of them."""
        return [
            self._bring_up(request, self.words.OPENINGS if number == 0 else self.words.ALSO)
            for number, request in enumerate(self._open if self._agenda["upfront"] else self._open[:1])
        ]

    def _bring_up(self, request: Request, templates: Choices) -> str:
        """A request, as far as this persona tells it of its own accord."""
        request["told"] = True
        if self.template_first == "always" or (self.template_first == "later" and self._started):
            return self._put(self._pick(templates), self._clause(request))
        clause = self._clause(request)
        return self._put(self._pick(templates), clause)

    def _put(self, template: str, clause: str) -> str:
        return template.format(clause)

    def _clause(self, request: Request) -> str:
        """As much of a wish as this persona tells at once."""
        return self._say(request, self._reveal(request))

    def _whole(self, request: Mapping[str, Any]) -> str:
        """All of a wish that the caller knows."""
        return self._say(request, [s for s in request["wish"] if s not in request.get("unknown", ())])

    def _reveal(self, request: Mapping[str, Any]) -> Sequence[str]:
        """The slots that this persona tells at once. "described" stands in for something that it does not remember."""
        wish, unknown = request["wish"], request.get("unknown", ())
        known = [s for s in self.reveals[self._persona] if s in wish and s not in unknown]
        return [s for s in known if s != "described" or unknown]

    def _say(self, request: Mapping[str, Any], slots: Sequence[str]) -> str:
        """A wish as a clause that fits the templates, with these of its slots."""
        raise NotImplementedError

    def _identity(self) -> str:
        """Who is calling."""
        raise NotImplementedError

    def _restate(self, request: Request) -> str:
        """The answer to words that make no sense: the wish once more, or goodbye."""
        return self._tired() or self._put(self._pick(self.restated), self._whole(request))

    # proposals and news

    def _conflicts(self, request: Request, text: str) -> bool:
        """True if an agent's proposal is not the wish."""
        raise NotImplementedError

    def _confirm(self, request: Request, text: str) -> str:
        """The answer to a proposal: no, if it is not the wish; a change of mind, if there is to be one; else yes."""
        if self._conflicts(request, text):
            return self._tired() or self._put(self._pick(self.words.CORRECTIONS), self._correction(request, text))
        then, request["then"] = request["then"], None
        if then is None:
            return self._agree(request, text)
        if then.get("drop"):
            return self._drop(request)
        old, request["wish"] = request["wish"], then
        return self._say_change(request, old)

    def _correction(self, request: Request, text: str) -> str:
        """The clause with which a wrong proposal is put right."""
        return self._whole(request)

    def _agree(self, request: Request, text: str) -> str:
        """Yes to a proposal."""
        self._close(request)
        self._confirmed.append(request)
        self._awaited += 1
        return self._pick(self.words.YES)

    def _say_change(self, request: Request, old: Mapping[str, Any]) -> str:
        """What is new about the wish of one who has changed their mind. ``old``: the wish before."""
        raise NotImplementedError

    def _unavailable(self, request: Request, text: str, *, proposed: bool) -> str:
        """The answer to bad news: another wish, once, or ``_accept``. ``proposed``: they come with a proposal."""
        fallback, request["fallback"] = request["fallback"], None
        if fallback is None:
            return self._accept(request, text, proposed=proposed)
        if fallback.get("drop"):
            return self._drop(request)
        old, request["wish"] = request["wish"], fallback
        if proposed and not self._conflicts(request, text):
            return self._confirm(request, text)
        return self._say_instead(request, old)

    def _accept(self, request: Request, text: str, *, proposed: bool) -> str:
        """The answer to bad news of one who wants nothing else instead."""
        return self._confirm(request, text) if proposed else self._tired() or self._settle(request, text)

    def _say_instead(self, request: Request, old: Mapping[str, Any]) -> str:
        """What is new about the wish of one who has heard bad news. ``old``: the wish before."""
        raise NotImplementedError

    # how it goes on, and how it ends

    def _close(self, request: Request) -> None:
        if request in self._open:
            self._open.remove(request)

    def _drop(self, request: Request) -> str:
        """Let a wish go."""
        self._close(request)
        said = self._pick(self.words.DROPS)
        return said if self._open else f"{said} {self._end()}"

    def _settle(self, request: Request, text: str) -> str:
        """The agent takes this request as finished: done, refused or answered."""
        self._close(request)
        return self._follow(text)

    def _hear_done(self, request: Request, text: str) -> str:
        """What was confirmed is done; else the agent takes this request as finished, unconfirmed."""
        if not (self._awaited if self.counts_done else self._confirmed):
            return self._settle(request, text)
        self._awaited -= 1
        return self._follow(text)

    def _follow(self, text: str) -> str:
        """Bring up what is left, or end. A caller who does not remind expects the agent to know what was told."""
        if not self._open:
            return self._end()
        request = self._open[0]
        if not request["told"]:
            return self._bring_up(request, self.words.ALSO)
        if self._agenda["reminds"]:
            return self._remind(request)
        return self._end() if self._asks_for_more(text) else self._wait()

    def _remind(self, request: Request) -> str:
        return self._bring_up(request, self.words.STILL)

    def _asks_for_more(self, text: str) -> bool:
        """True if an agent takes it that all is done."""
        return "else" in text.lower()

    def _wait(self) -> str:
        return "OK."

    def _end(self) -> str:
        return self._pick(self.words.ENDINGS)

    def _tired(self, asked: str | None = None) -> str:
        """Lose patience and perhaps give up. What is asked (``asked``) for the first time costs nothing."""
        if asked is not None and asked not in self._asked:
            self._asked.add(asked)
            return ""
        self._patience -= 1
        return self._give_up() if self._patience < 0 else ""

    def _give_up(self) -> str:
        return self._pick(self.words.GIVES_UP)
