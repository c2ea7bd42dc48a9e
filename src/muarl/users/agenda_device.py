"""A user of a service with something at hand, such as a phone: does on it what the agent asks for, and tells what it
shows.

It reads the agent's words and its own tools' answers only, never the world.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from muarl.domains.agenda import Agenda, AgendaRequest
from muarl.domains.kit import templates
from muarl.domains.kit.device import Device, Step, Trouble
from muarl.domains.kit.service import Service
from muarl.domains.tasks import Task
from muarl.language.acts import hear
from muarl.types.chat import Message, ToolCall
from muarl.users.agenda_service import TRANSFER, ServiceAgendaUser
from muarl.users.base import UserTurn

ASKS_HOW = 0.2
"""How often a confused user asks how to do what was asked, for each new thing."""

Deeds = Generator[tuple[str, Mapping[str, Any]], str, str]
"""Yields (tool, arguments), is sent the tool's text, and returns what is then said to the agent."""


class DeviceAgendaUser(ServiceAgendaUser):
    """Plays ``task.agenda`` at a ``service`` whose users have a device. ConfigError if the task has no agenda."""

    def __init__(
        self,
        task: Task,
        *,
        service: Service,
        seed: int,
        persona: str | None = None,
        agenda: Agenda | None = None,
    ) -> None:
        super().__init__(task, service=service, seed=seed, persona=persona, agenda=agenda)
        assert service.device is not None
        self._device: Device = service.device
        self._deeds: Deeds | None = None
        self._calls = 0

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        """Answer the agent's last message, or go on with what it asked for; the first reply is the opening."""
        last = conversation[-1] if conversation else None
        text = (last.content or "") if last is not None else ""
        if self._deeds is not None and last is not None and last.role == "tool":
            return self._go_on(text)
        said: str | Deeds = self._hear(text) if self._started else self._opening()
        self._started = True
        if isinstance(said, str):
            return UserTurn(Message("user", said))
        self._deeds = said
        return self._go_on(None)

    def _go_on(self, result: str | None) -> UserTurn:
        assert self._deeds is not None
        try:
            name, arguments = next(self._deeds) if result is None else self._deeds.send(result)
        except StopIteration as end:
            self._deeds = None
            return UserTurn(Message("user", end.value))
        self._calls += 1
        return UserTurn(Message("user", None, (ToolCall(f"user_{self._calls}", name, dict(arguments), "user"),)))

    # what is heard

    def _hear(self, text: str) -> str | Deeds:
        acts, steps = hear(text), self._device.asked(text)
        if "transferred" in acts:
            return TRANSFER
        request = self._request_meant(text)
        asked = [] if request is None or request["kind"] == "outside" else self._asked_for(request, text)
        if steps and not asked:
            return self._do(steps)
        trouble = self._trouble(request)
        if request is None or trouble is None or asked or self._asks_who(text, acts):
            return self._answer(text)
        if acts & {"confirm", "refuse", "unavailable"}:
            return self._answer(text)
        return self._see(request, trouble) if "done" in acts else self._restate(request)

    def _trouble(self, request: AgendaRequest | None) -> Trouble | None:
        if request is None or request["kind"] == "outside":
            return None
        return self._service.intent(request["kind"]).trouble

    def _about(self) -> tuple[AgendaRequest | None, Trouble | None]:
        """The trouble that the user has told of and still has."""
        request = next((r for r in self._open if r["told"] and self._trouble(r) is not None), None)
        return request, self._trouble(request)

    def _conflicts(self, request: AgendaRequest, text: str) -> bool:
        """Steps towards the end of a trouble need not name any of its details."""
        if self._trouble(request) is None:
            return super()._conflicts(request, text)
        kinds = {self._service.kind(self._service.slots[slot]): value for slot, value in request["goal"].items()}
        mentions = self._service.mentions(text, list(kinds))
        return any(mentions[kind] and value not in [m.value for m in mentions[kind]] for kind, value in kinds.items())

    def _confirm(self, request: AgendaRequest, text: str) -> str:
        if self._trouble(request) is None or self._conflicts(request, text):
            return super()._confirm(request, text)
        changed = self._changed(request, request["then"] or {}) if request["then"] else []
        if any(self._names(text, request, slot) for slot in changed):
            return super()._confirm(request, text)
        return self._agree(request, text)  # the change of mind is about something that this proposal does not speak of

    def _agree(self, request: AgendaRequest, text: str) -> str:
        if self._trouble(request) is None:
            return super()._agree(request, text)
        self._news()
        return self._tired(f"agreed to {text}") or self._pick(self.words.YES)

    # what is done

    def _do(self, steps: Sequence[Step]) -> str | Deeds:
        names = ", ".join(step.name for step in steps)
        changes = [step for step in steps if self._changing(step)]
        if changes and self._persona == "confused" and f"how {names}" not in self._asked:
            self._asked.add(f"how {names}")
            if self._rng.random() < ASKS_HOW:
                return templates.HOW
        if changes and f"changes {names}" not in self._asked:
            self._news()
        return self._tired(f"{'changes' if changes else 'steps'} {names}") or self._carry_out(steps)

    def _changing(self, step: Step) -> bool:
        return any(self._service.changes(tool) for tool, _ in step.calls)

    def _news(self) -> None:
        """Something has changed, so it is no nuisance to look and to try again."""
        self._asked = {asked for asked in self._asked if not asked.startswith("steps ")}

    def _carry_out(self, steps: Sequence[Step]) -> Deeds:
        """Take the steps one by one; then tell what was seen, and whether the trouble is over if anything changed."""
        seen: dict[str, str] = {}
        changed = False
        for step in steps:
            held = self._device.read((yield step.look, {})) if step.look else {}
            if step.look and all(held.get(name) == value for name, value in step.sets.items()):
                seen |= step.sets
                continue
            changed = changed or self._changing(step) or not step.calls
            for tool, arguments in step.calls:
                seen |= self._device.read((yield tool, arguments))
        request, trouble = self._about()
        if request is None or trouble is None:
            return self._report(seen) or self._pick(templates.DID)
        if changed:
            return (yield from self._prove(request, trouble, seen))
        if trouble.shown_by in [tool for step in steps for tool, _ in step.calls] and trouble.over(seen):
            return self._relieved(request)
        return self._report(seen) or self._pick(templates.FAILS)

    def _see(self, request: AgendaRequest, trouble: Trouble) -> Deeds:
        """The agent takes it for done: see whether the trouble is over."""
        proof = self._device.read((yield trouble.shown_by, {}))
        if trouble.over(proof):
            return self._relieved(request)
        return self._tired() or self._pick(templates.FAILS)

    def _prove(self, request: AgendaRequest, trouble: Trouble, seen: Mapping[str, str]) -> Deeds:
        proof = self._device.read((yield trouble.shown_by, {}))
        if trouble.over(proof):
            return self._relieved(request)
        report = self._report(seen) if self._persona == "chatty" else ""
        return " ".join([*([report] if report else []), self._pick(templates.FAILS)])

    def _report(self, facts: Mapping[str, str]) -> str:
        text = self._device.tell(facts)
        return f"{self._pick(templates.LEADS)}{text}." if text else ""

    def _relieved(self, request: AgendaRequest) -> str:
        self._close(request)
        return self._pick(templates.WORKS)
