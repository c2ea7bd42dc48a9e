"""How a request is served, run step by step: what is to be done next, given what is known of it.

The same plan drives the scripted expert, who learns the slots from a user's words; the making of tasks, which knows
them and finds out what a right answer is (``gold``); and audits, which ask whether the policy leads to a call
(``audit``). A plan is run from its start each time something has become known, so it must do the same each time: it may
look at ``it`` and at constants, and at nothing else. What it reads in documents it reads by ``consult``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from muarl.basics.errors import ConfigError, attributed
from muarl.domains.kit.authority import ANSWER, Authority, Limit
from muarl.domains.kit.colleague import APPROVED, DECLINED, REQUEST
from muarl.domains.kit.declaration import RESERVED, Intent, Slot, Texts, several
from muarl.domains.kit.device import OVER, Step
from muarl.domains.kit.mistakes import calling_line, calling_place, line_of, line_of_plan, one_of_them
from muarl.domains.kit.moves import ANEW, ENDS, Move, MoveKind, Notes, Request, Rule, Seen, WriteRefusal, call_key
from muarl.domains.kit.records import PLACE, Record, at, fill, plain, rows, same, wrapped
from muarl.domains.policy_numbers import RuleNumbers, numbers_of

_UNKNOWN = object()


class _Stop(BaseException):  # so that a plan's own `except Exception` does not take it for an error
    def __init__(self, move: Move) -> None:
        self.move = move


class Plan:
    """What a plan is written with; by convention it is called ``it``.

    The request's slots are its attributes: one that is not known yet is asked for. ``it.user`` is the user's record and
    ``it.today`` the date. What is set (``it.b = it.look(...)``) can be named in texts: "{b.status}", in a form where
    wanted: "{b.total|money}", "|euro", "|pound", "|plain", "{b.day|date}", "|day_first", "|list", "|lower". Slots stand
    in texts as they are spoken of.

    ``rule``: the numbers of the policy's rules that a refusal, a hand-over, an answer or a write keeps, such as 10,
    "3.2" or (4, 6): ``muarl domains check`` then says which rules are practised and audited.
    """

    def __init__(self, run: _Run) -> None:
        object.__setattr__(self, "_run", run)

    def __getattr__(self, name: str) -> Any:
        return self._run.value(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in RESERVED or name in self._run.slots:
            taken = "a slot of it" if name in self._run.slots else "a word that plans have a meaning for"
            raise ConfigError(f"intent {self._run.intent.name}: its plan sets it.{name}, which is {taken}: rename it")
        self._run.values[name] = value

    def look(self, tool: str, /, **arguments: Any) -> Any:
        """What a reading tool answers. Where it fails, the user is told that there is no such thing, and asked for the
        slot again that its arguments come from."""
        return self._run.look(tool, arguments)

    def peek(self, tool: str, /, **arguments: Any) -> Any:
        """What a reading tool answers, None where it fails."""
        return self._run.look(tool, arguments, needed=False)

    def look_anew(self, tool: str, /, **arguments: Any) -> Any:
        """What a reading tool answers after all that has been written, and all steps that the user has taken, before
        this place. ``look`` keeps to its first answer."""
        return self._run.look(tool, arguments, anew=True)

    def instruct(self, step: Step, /) -> Any:
        """Have the user take a step with tools of their own. Returns the facts that the user tells then, "" for those
        that are not told. The plan ends here if the user tells that the trouble is over."""
        return self._run.instruct(step)

    def pick(self, records: Any, fits: Callable[[Any], Any] | None = None, /, **fields: Any) -> Any:
        """The first of the records whose fields have these values (case does not count) and that ``fits``, or None."""
        matching = (
            one
            for one in rows(records)
            if all(same(one[name], value) for name, value in fields.items()) and (fits is None or fits(one))
        )
        return next(matching, None)

    def refuse(self, why: Texts, *, rule: RuleNumbers = None) -> NoReturn:
        """It is against the policy: say why."""
        raise self._run.stop("refuse", rule, texts=several(why))

    def refuse_if(self, condition: Any, why: Texts, *, rule: RuleNumbers = None) -> None:
        """Refuse where the condition holds."""
        self._run.rule("refuse", several(why), bool(condition), rule)

    def refuse_unless(self, condition: Any, why: Texts, *, rule: RuleNumbers = None) -> None:
        """Refuse where the condition does not hold."""
        self._run.rule("refuse", several(why), not condition, rule)

    def transfer(self, summary: str, *, rule: RuleNumbers = None) -> NoReturn:
        """Hand the user over to a person, with this summary."""
        raise self._run.stop("transfer", rule, texts=(summary,))

    def transfer_if(self, condition: Any, summary: str, *, rule: RuleNumbers = None) -> None:
        """Hand over where the condition holds."""
        self._run.rule("transfer", (summary,), bool(condition), rule)

    def unavailable(
        self, slot: str | Slot, options: Any = None, why: Texts = (), *, rule: RuleNumbers = None
    ) -> NoReturn:
        """What the user wants is not to be had: the slot must be chosen anew, among these options if there are any.

        ``options``: None where they cannot be told, and any other value may do. ``why``: what is said of it, such as
        "a file {name} already exists"; a whole sentence, with its full stop, is said as it is.
        """
        values = [] if options is None else plain(list(options))
        offered = None if options is None else tuple(one for n, one in enumerate(values) if one not in values[:n])
        raise self._run.stop("unavailable", rule, slot=_name(slot), options=offered, texts=several(why))

    def unavailable_if(
        self, condition: Any, slot: str | Slot, options: Any = None, why: Texts = (), *, rule: RuleNumbers = None
    ) -> None:
        """Not to be had where the condition holds."""
        if self._run.rule_applies("unavailable", _name(slot), bool(condition), several(why), rule):
            self.unavailable(slot, options, why)

    def missing(self, slot: str | Slot, why: Texts = ()) -> NoReturn:
        """There is no such thing, as a look-up has shown that did not fail: the user is told so (``why``), and asked
        for the slot again."""
        raise self._run.stop("missing", slot=_name(slot), texts=several(why))

    def answer(self, texts: Texts, *, tell: Texts, rule: RuleNumbers = None) -> NoReturn:
        """Tell the user something; ``tell``: what the agent's words must hold, such as "{order.total|plain}"."""
        raise self._run.stop("answer", rule, texts=several(texts), tell=several(tell))

    def write(
        self, tool: str, /, *, propose: Texts, done: Texts, fails: str = "", rule: RuleNumbers = None, **arguments: Any
    ) -> Any:
        """Propose it ("I will ..."), wait for a yes, call the tool, and say that it is done. Returns what the tool
        answers, which texts call ``result``.

        ``propose``: what comes behind "I will", or a whole question, which is asked as it is.

        ``fails``: a regular expression of refusals that the plan deals with: it gets what the tool answers as
        ``WriteRefusal``.
        """
        self._run.cite("write", tool, rule)
        return self._run.write(tool, arguments, several(propose), several(done), fails)

    def then(self, tool: str, /, *, done: Texts = (), fails: str = "", **arguments: Any) -> Any:
        """A further call that the yes to the last ``write`` covers. Returns what the tool answers. ``done``: said
        instead of what the write would have been followed by; ``fails``: see ``write``."""
        if not self._run.propose:
            where = self._run.intent.name
            raise ConfigError(f"the plan of {where} calls it.then before it.write, which asks for the yes")
        return self._run.write(tool, arguments, (), several(done), fails)

    def do(self, tool: str, /, *, fails: str = "", **arguments: Any) -> Any:
        """Call a writing tool for which nobody need be asked, such as one that logs in. ``fails``: see ``write``."""
        return self._run.write(tool, arguments, (), (), fails)


def _name(slot: str | Slot) -> str:
    return slot if isinstance(slot, str) else slot.name


class _Run:
    """One run of a plan. ``notes``: where given, the conditions that are met on the way are noted and passed over.
    ``authority``: what needs a colleague's approval."""

    def __init__(
        self,
        intent: Intent,
        request: Request,
        seen: Seen,
        user: Mapping[str, Any],
        today: str,
        notes: Notes | None,
        authority: Authority | None,
    ) -> None:
        self.intent, self.request, self.seen, self.notes, self.authority = intent, request, seen, notes, authority
        self.slots = {slot.name: slot for slot in intent.slots}
        self.values: dict[str, Any] = {"user": Record(user), "today": today, **request.slots}
        self.where = f"intent {intent.name}"
        self.writes = self.steps = 0
        self.passed_over: Move | None = None
        self.propose: tuple[str, ...] = ()
        self.done: tuple[str, ...] = ()

    def cite(self, kind: MoveKind, what: str, rule: RuleNumbers) -> tuple[str, ...]:
        """The numbers of the policy's rules that something keeps, which a trial run notes."""
        numbers = numbers_of(rule, f"{self.where}: {kind}")
        if self.notes is not None and kind in ("write", "answer"):
            self.notes.cite(Rule(kind, what, numbers, calling_place()))
        return numbers

    def stop(self, kind: MoveKind, rule: RuleNumbers = None, **more: Any) -> _Stop:
        texts = more.get("texts", ())
        if kind == "unavailable" and more["slot"] not in self.slots:
            raise ConfigError(
                f"{self.where}: unavailable: {more['slot']!r} is no slot{one_of_them(more['slot'], self.slots)}"
            )
        self.speak((*texts, *more.get("tell", ())))
        numbers = self.cite(kind, "", rule)
        if self.notes is not None and kind in ENDS:
            self.notes.add(Rule(kind, more.get("slot") or texts[0], numbers, calling_place()), texts)
        elif self.notes is not None:
            self.notes.hear(texts)
        return _Stop(Move(kind, self.values, **more))

    def rule(self, kind: MoveKind, texts: tuple[str, ...], applies: bool, rule: RuleNumbers) -> None:
        if not self.rule_applies(kind, texts[0], applies, texts, rule):
            return
        stop = self.stop(kind, texts=texts, conditional=True)
        if kind != "refuse" or not self.request.over:
            raise stop
        self.passed_over = self.passed_over or stop.move

    def rule_applies(self, kind: MoveKind, name: str, applies: bool, texts: tuple[str, ...], rule: RuleNumbers) -> bool:
        if self.notes is not None:
            self.speak(texts)
            self.notes.add(Rule(kind, name, self.cite(kind, name, rule), calling_place()), texts)
            return False
        return applies

    def speak(self, texts: tuple[str, ...]) -> None:
        """Ask for slots that texts name. ConfigError for a place in them that cannot be filled."""
        for text in texts:
            if set("{}") & set(PLACE.sub("", text)):
                raise ConfigError(
                    f"{self.where}: the text {text!r} has a brace of no place: write {{SLOT}} or {{it.FIELD}}"
                )
            for path, _ in PLACE.findall(text):
                if (name := path.split(".")[0]) in self.slots:
                    self.value(name)
                elif name not in self.values:
                    hint = one_of_them(name, dict.fromkeys([*self.slots, *self.values]))
                    raise ConfigError(f"{self.where}: the text {text!r} speaks of {name!r}{hint}")
            if self.notes is not None:
                continue  # past a condition that should have ended it there may be no such record
            try:
                fill(text, self.values)
            except LookupError as problem:
                raise ConfigError(f"{self.where}: the text {text!r}: {problem.args[0]}") from None

    def value(self, name: str) -> Any:
        if self.notes is not None and name in self.slots:
            self.notes.slots.add(name)
        value = self.values.get(name, _UNKNOWN)
        if value is not _UNKNOWN:
            return value
        if name not in self.slots:
            hint = one_of_them(name, dict.fromkeys([*self.slots, *self.values]))
            raise AttributeError(f"it.{name}: neither a slot of {self.intent.name} nor set before{hint}")
        self.values[name] = self._learn(self.slots[name])
        return self.values[name]

    def _learn(self, slot: Slot) -> Any:
        """Find the record that a user has described; else ask."""
        how, described = slot.described, self.request.described.get(slot.name)
        if how is None or described is None:
            raise self.stop("ask", slot=slot.name)
        if how.find is not None:
            ids = how.find(Plan(self), described)
            if len(ids) != 1:
                raise self.stop("missing", slot=slot.name)
            return ids[0]
        arguments = {argument: self.values["user"][name] for argument, name in how.given.items()}
        listed = self.look(how.look, arguments, slot.name)
        listed = listed[how.records] if how.records else listed
        matching = [r for r in rows(listed) if how.match in r and same(r[how.match], described)]
        if len(matching) != 1:
            raise self.stop("missing", slot=slot.name)
        return matching[0][how.id]

    def look(
        self, tool: str, arguments: Mapping[str, Any], slot: str = "", *, needed: bool = True, anew: bool = False
    ) -> Any:
        plain_arguments = {name: plain(value) for name, value in arguments.items()}
        called = call_key(tool, plain_arguments)
        key = f"{called}{ANEW}{self.writes + self.steps}" if anew else called
        if key not in self.request.looked:
            if called not in self.seen:
                raise self.stop("call", tool=tool, arguments=plain_arguments, slot=slot, place=calling_line())
            self.request.looked[key] = self.seen[called]
        result = self.request.looked[key]
        if result is None and needed:
            raise self.stop("missing", slot=slot or self._source(plain_arguments))
        return wrapped(result)

    def _source(self, arguments: Mapping[str, Any]) -> str:
        """The slot that a look-up's arguments come from."""
        slots = [name for name in self.slots if name in self.values]
        same = [name for value in arguments.values() for name in slots if self.values[name] == value]
        written = json.dumps(arguments, ensure_ascii=False, default=str)
        within = [
            n
            for n in slots
            if isinstance(self.values[n], str) and len(self.values[n]) > 2 and self.values[n] in written
        ]
        return next(iter(same + within), "")

    def instruct(self, step: Step) -> Any:
        number, self.steps = self.steps, self.steps + 1
        if self.notes is not None:
            self.notes.hear(step.wordings)
        if number >= len(self.request.reported):
            raise self.stop("instruct", step=step, texts=step.wordings)
        facts = self.request.reported[number]
        if facts.get(OVER):
            raise self.stop("finished")
        return Record(facts)

    def write(
        self, tool: str, arguments: Mapping[str, Any], propose: tuple[str, ...], done: tuple[str, ...], fails: str
    ) -> Any:
        limit = self._limit(tool)
        if limit is not None and self.authority is not None:
            self._ask_colleague(self.authority, limit, tuple(map(self.authority.proposed, propose)))
            propose = ()  # the yes to what was proposed covers both calls
        return self._write(tool, arguments, propose, done, fails)

    def _limit(self, tool: str) -> Limit | None:
        """Why a write needs approval; None where it needs none."""
        if self.authority is None or self.request.alone:
            return None
        limits = list(self.authority.of(tool))
        if limits and self.notes is not None:
            self.notes.add(Rule("declined", self.authority.declined[0], (), calling_place()), self.authority.declined)
        return next((limit for limit in limits if self._is_beyond(limit)), None)

    def _is_beyond(self, limit: Limit) -> bool:
        if limit.when is not None:
            return bool(limit.when(Plan(self)))
        amount = plain(self._at(limit, "amount", limit.amount))
        if isinstance(amount, bool) or not isinstance(amount, (int, float)) or limit.above is None:
            raise ConfigError(f"{self.where}: limit of {limit.tool}: amount: {limit.amount!r} is {amount!r}, no number")
        return amount > limit.above

    def _at(self, limit: Limit, name: str, path: str) -> Any:
        """What stands where a limit says."""
        try:
            self.value(path.split(".")[0])
            return at(path, self.values)
        except (AttributeError, LookupError) as problem:
            if self.notes is not None:  # past a condition that should have ended it
                raise
            raise ConfigError(f"{self.where}: limit of {limit.tool}: {name}: {problem.args[0]}") from None

    def _ask_colleague(self, authority: Authority, limit: Limit, propose: tuple[str, ...]) -> None:
        """Ask for approval; the plan ends here if it is declined."""
        arguments = {"action": limit.tool, "record_id": plain(self._at(limit, "record", limit.record))}
        if limit.amount:
            arguments["amount"] = plain(self._at(limit, "amount", limit.amount))
        if self.notes is None:
            self.speak((limit.reason,))
        arguments["reason"] = "a trial run" if self.notes is not None else authority.reason(limit, self.values)
        answer = self._write(REQUEST, arguments, propose, (), "", limit)
        if answer["decision"] not in (APPROVED, DECLINED):
            name = authority.colleague.name
            raise ConfigError(f"{self.where}: limit of {limit.tool}: {name} decides nothing: {plain(answer)}")
        self.values[ANSWER] = answer
        if answer["decision"] == DECLINED and self.notes is None:
            raise self.stop("declined", texts=authority.declined)

    def _write(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        propose: tuple[str, ...],
        done: tuple[str, ...],
        fails: str,
        limit: Limit | None = None,
    ) -> Any:
        number, self.writes = self.writes, self.writes + 1
        self.propose, self.done = propose or self.propose, done or self.done
        if self.notes is not None:
            self.notes.hear((*propose, *done))
            self.notes.proposals.setdefault(tool, set()).update(self.propose)
        if number >= len(self.request.written):
            plain_arguments = {name: plain(value) for name, value in arguments.items()}
            place = calling_line()
            raise self.stop(
                "write", tool=tool, arguments=plain_arguments, texts=propose, fails=fails, place=place, limit=limit
            )
        result = wrapped(self.request.written[number])
        if not isinstance(result, WriteRefusal):
            self.values["result"] = result
        return result


def next_move(
    intent: Intent,
    request: Request,
    seen: Seen,
    user: Mapping[str, Any],
    today: str,
    *,
    notes: Notes | None = None,
    authority: Authority | None = None,
) -> Move:
    """The next thing to do in a request. What it needs to know is asked for by the move that it returns.

    ``notes``: for a trial run, which passes over conditions and notes them. ``authority``: what needs approval.
    """
    run = _Run(intent, request, seen, user, today, notes, authority)
    with attributed(f"intent {intent.name}: its plan", intent.plan):
        try:
            intent.plan(Plan(run))
            run.speak(run.done)
        except _Stop as stop:
            return stop.move
        except ConfigError as problem:
            raise ConfigError(f"{problem}{line_of(problem) or line_of_plan(intent.plan)}") from problem
        except Exception:
            if run.passed_over is None:
                raise
            return replace(run.passed_over, conditional=False)  # there is nothing to go on with
    if not (run.writes or run.steps) and notes is None:
        raise ConfigError(
            f"intent {intent.name}: its plan comes to its end and has done nothing: let it write, answer, refuse or "
            f"transfer in every case{line_of_plan(intent.plan)}"
        )
    return Move("finished", run.values, texts=run.done)
