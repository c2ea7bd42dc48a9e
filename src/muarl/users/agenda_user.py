"""What users with an agenda share, whatever they call about: telling, agreeing, changing their mind, losing patience.

A domain's user (``agenda*.py``) says what is its own: how its requests sound, and what it hears in an agent's words.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from muarl.domains.agenda import Agenda, AgendaRequest, agenda_of
from muarl.domains.tasks import Task
from muarl.language.acts import hear
from muarl.types.chat import Message
from muarl.users.base import UserTurn

PATIENCE: Mapping[str, int] = {"terse": 4, "chatty": 5, "confused": 5, "impatient": 3}
"""How many useless turns each persona bears before it gives up."""

Choices = str | Sequence[str] | Mapping[str, Sequence[str]]
"""What is said: one sentence, one of several, or one of those of a persona."""


class UserTemplates(Protocol):
    """A domain's stock phrases (a module will do). Those with ``{}`` take a request."""

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


class AgendaUser:
    """A user with an agenda and no language model. Deterministic in (task, seed, what it hears).

    It reads the agent's words only, never the world. A subclass gives ``words``, and writes ``_answer``, ``_clause``,
    ``_whole``, ``_conflicts``, ``_say_change`` and ``_say_instead`` as far as it gets there. What it says depends on
    the order in which it draws from its random numbers, so that a change of that order changes every conversation.
    """

    words: ClassVar[UserTemplates]
    restated: ClassVar[Choices] = "I want to {}."
    """How it says its request again to an agent that makes no sense."""

    def __init__(
        self,
        task: Task,
        *,
        seed: int,
        persona: str | None = None,
        agenda: Agenda | None = None,
        label: str = "agenda",
    ) -> None:
        """``agenda``: None for the task's own. ``label``: what sets its random numbers apart from other domains'."""
        self._agenda = agenda_of(task) if agenda is None else agenda
        self._persona: str = persona or self._agenda["persona"]
        self._rng = random.Random(f"{label} {task.id} {seed}")
        self._open: list[AgendaRequest] = [{**r, "told": False} for r in self._agenda["requests"]]
        self._confirmed: list[AgendaRequest] = []
        self._patience = PATIENCE[self._persona]
        self._started = False
        self._asked: set[str] = set()

    @staticmethod
    def hears(text: str) -> set[str]:
        """What an agent's words mean, for those who play a difficult user around this one."""
        return hear(text)

    @staticmethod
    def asks_for_deeds(text: str) -> bool:
        """Whether an agent's words ask for something to be done or looked at."""
        return False

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
        return " ".join(self._first_requests())

    def _first_requests(self) -> list[str]:
        """What it brings up at the start: its first request, or all of them."""
        return [
            self._bring_up(request, self.words.OPENINGS if number == 0 else self.words.ALSO)
            for number, request in enumerate(self._open if self._agenda["upfront"] else self._open[:1])
        ]

    def _bring_up(self, request: AgendaRequest, templates: Choices) -> str:
        """A request, as far as this persona tells it of its own accord."""
        request["told"] = True
        return self._put(self._pick(templates), self._clause(request))

    def _put(self, template: str, clause: str) -> str:
        return template.format(clause)

    def _clause(self, request: AgendaRequest) -> str:
        """As much of a request as this persona tells at once."""
        raise NotImplementedError

    def _whole(self, request: AgendaRequest) -> str:
        """All of a request that the user knows."""
        raise NotImplementedError

    def _identity(self) -> str:
        """Who is calling."""
        raise NotImplementedError

    def _restate(self, request: AgendaRequest) -> str:
        """The answer to words that make no sense: the request once more, or goodbye."""
        return self._tired() or self._put(self._pick(self.restated), self._whole(request))

    # proposals and news

    def _conflicts(self, request: AgendaRequest, text: str) -> bool:
        """True if an agent's proposal is not the request."""
        raise NotImplementedError

    def _confirm(self, request: AgendaRequest, text: str) -> str:
        """The answer to a proposal: no, if it is not the request; a change of mind, if there is to be one; else yes."""
        if self._conflicts(request, text):
            return self._tired() or self._put(self._pick(self.words.CORRECTIONS), self._correction(request, text))
        then, request["then"] = request["then"], None
        if then is None:
            return self._agree(request, text)
        if then.get("drop"):
            return self._drop(request)
        old, request["goal"] = request["goal"], then
        return self._say_change(request, old)

    def _correction(self, request: AgendaRequest, text: str) -> str:
        """The clause with which a wrong proposal is put right."""
        return self._whole(request)

    def _agree(self, request: AgendaRequest, text: str) -> str:
        """Yes to a proposal."""
        self._close(request)
        self._confirmed.append(request)
        return self._pick(self.words.YES)

    def _say_change(self, request: AgendaRequest, old: Mapping[str, Any]) -> str:
        """What is new about the request of one who has changed their mind. ``old``: the request before."""
        raise NotImplementedError

    def _unavailable(self, request: AgendaRequest, text: str, *, proposed: bool) -> str:
        """The answer to bad news: another request, once, or ``_accept``. ``proposed``: they come with a proposal."""
        fallback, request["fallback"] = request["fallback"], None
        if fallback is None:
            return self._accept(request, text, proposed=proposed)
        if fallback.get("drop"):
            return self._drop(request)
        old, request["goal"] = request["goal"], fallback
        if proposed and not self._conflicts(request, text):
            return self._confirm(request, text)
        return self._say_instead(request, old)

    def _accept(self, request: AgendaRequest, text: str, *, proposed: bool) -> str:
        """The answer to bad news of one who wants nothing else instead."""
        return self._confirm(request, text) if proposed else self._tired() or self._settle(request, text)

    def _say_instead(self, request: AgendaRequest, old: Mapping[str, Any]) -> str:
        """What is new about the request of one who has heard bad news. ``old``: the request before."""
        raise NotImplementedError

    # how it continues, and how it ends

    def _close(self, request: AgendaRequest) -> None:
        if request in self._open:
            self._open.remove(request)

    def _drop(self, request: AgendaRequest) -> str:
        """Let a request go."""
        self._close(request)
        said = self._pick(self.words.DROPS)
        return said if self._open else f"{said} {self._end()}"

    def _settle(self, request: AgendaRequest, text: str) -> str:
        """The agent takes this request as finished: done, refused or answered."""
        self._close(request)
        return self._follow(text)

    def _hear_done(self, request: AgendaRequest, text: str) -> str:
        """What was confirmed is done; else the agent takes this request as finished, unconfirmed."""
        if not self._confirmed:
            return self._settle(request, text)
        return self._follow(text)

    def _follow(self, text: str) -> str:
        """Bring up what is left, or end. A user who does not remind expects the agent to know what was told."""
        if not self._open:
            return self._end()
        request = self._open[0]
        if not request["told"]:
            return self._bring_up(request, self.words.ALSO)
        if self._agenda["reminds"]:
            return self._remind(request)
        return self._end() if self._asks_for_more(text) else self._wait()

    def _remind(self, request: AgendaRequest) -> str:
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
