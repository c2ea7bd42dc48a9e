"""What an author gets wrong about a service, for ``muarl domains check``: intents, rules of plans, slots."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.domains.agenda import AgendaRequest, agenda_of
from muarl.domains.checking import Check, CheckReport, NotChecked, Problem, Samples, of_task, place_of
from muarl.domains.generated import Infeasible
from muarl.domains.kit import gold, policy_rules
from muarl.domains.kit.colleague import APPROVALS, REQUEST
from muarl.domains.kit.declaration import Intent, several
from muarl.domains.kit.exploring import SMALL, explored
from muarl.domains.kit.moves import Request, Rule, call_key
from muarl.domains.kit.plan import next_move
from muarl.domains.kit.requests import draw_goal, split
from muarl.domains.kit.service import OUTSIDE, Service
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.kit.worlds import shown_user
from muarl.domains.scripted_expert import ErrorProfile
from muarl.domains.tasks import Task

WORLDS = 40
"""Small worlds in which every rule is looked for."""
MOST_WORLDS = 500
"""Small worlds in which a rule is looked for that was not met before: one that a request in 1,000 meets is found."""
REQUESTS = 6
"""Requests of an intent that are drawn in each of them."""
ALONE = ErrorProfile(skip_approval=1.0)
"""The mistakes of an expert that never asks for approval."""


def checks(maker: TaskMaker) -> tuple[Check, ...]:
    """The checks of a service."""
    own = _Checks(maker)
    approval = Check("approval", "Doing alone what a colleague must approve loses rewards.", own.approval)
    return (
        Check("intents", "Every intent is asked for in some task, and its plan serves it.", own.intents),
        Check("rules", "Every rule of a plan decides some request.", own.rules),
        *([approval] if maker.service.authority is not None else ()),
        Check("policy-rules", "Every numbered rule of the policy is practised or audited.", own.policy_rules),
        Check("words", "No words of an intent stand in a value that users say for another.", own.words),
        Check("transfer", "Users whom only a person can help can be handed over to one.", own.transfer),
        Check("slots", "The plans ask for every slot, and its answers are understood.", own.slots),
    )


@dataclass(frozen=True)
class _Checks:
    """The checks of one service, whose tasks ``maker`` makes."""

    maker: TaskMaker

    @property
    def service(self) -> Service:
        return self.maker.service

    def intents(self, samples: Samples) -> CheckReport:
        """Plans that fail, that never serve anybody, or that nobody asks for."""
        problems: list[Problem] = []
        for name in (intent.name for intent in self.service.intents):
            where, exploration = _where(self.service.intent(name)), explored(self.maker.worlds)[name]
            problems += [
                Problem(f"its plan fails: {problem}", where, "Correct the plan") for problem in exploration.problems
            ]
            forbidden = self.service.intent(name).forbidden
            if not forbidden and not exploration.may_end("done") and not exploration.may_end("transfer"):
                what = f"its plan serves nobody: it comes to {', '.join(sorted(exploration.ends)) or 'nothing'}"
                problems.append(Problem(what, where, "Draw slots that it can serve"))
        if not problems:  # with such plans there may be no tasks
            problems += self._unasked(self.maker.intents(samples.size or SMALL.name), samples)
        return CheckReport(f"{len(self.service.intents)} intents", tuple(problems))

    def _unasked(self, names: Sequence[str], samples: Samples) -> list[Problem]:
        intent_names = {intent.name for intent in self.service.intents}
        kinds = [{request["kind"] for request in _requests(task)} for task in samples.tasks()]
        tasks = [asked for asked in kinds if asked & intent_names]  # the environment may play other services, too
        asked = set().union(*tasks)
        remedy = "Give it a larger share, or records to draw its slots from"
        return [
            Problem(f"none of {len(tasks)} tasks asks for it", _where(self.service.intent(name)), remedy)
            for name in names
            # those that are always refused are rare in any service
            if name not in asked and len(tasks) >= 10 * len(names) and not self.service.intent(name).forbidden
        ]

    def rules(self, samples: Samples) -> CheckReport:
        """Rules that hardly any request meets, so that nobody learns them."""
        names = self.maker.intents(samples.size or SMALL.name)
        rules = {name: explored(self.maker.worlds)[name].rules for name in names}
        missed, drawn = self._missed(samples, rules)
        problems = tuple(
            Problem(
                f"no request of {drawn[name]:,} meets its rule {rule.text!r} ({rule.kind})",
                _where(self.service.intent(name)),
                "Make worlds in which the condition holds now and then, or remove the rule if the policy has none such",
            )
            for name in names
            for rule in missed[name]
        )
        return CheckReport(f"{sum(map(len, rules.values()))} rules of {len(names)} plans", problems)

    def transfer(self, samples: Samples) -> CheckReport:
        """Whether there is a tool that hands users over where plans and topics want one."""
        service = self.service
        if service.transfers:
            return CheckReport(f"{service.transfer}, {len(service.outside)} topics")
        remedy = 'Name it: Service(transfer="TOOL"), or write such a tool'
        explorations = explored(self.maker.worlds)
        problems = [
            Problem(f"its plan hands users over, and there is no tool {service.transfer!r}", _where(intent), remedy)
            for intent in service.intents
            if explorations[intent.name].may_end("transfer")
        ]
        if service.outside not in ((), OUTSIDE):
            what = f"outside has {len(service.outside)} topics, of which no task is made without a tool that hands over"
            problems.append(Problem(what, "", remedy))
        return CheckReport(
            f"no tool {service.transfer!r}, so nobody asks for what only a person can help with", tuple(problems)
        )

    def _missed(
        self, samples: Samples, rules: Mapping[str, Sequence[Rule]]
    ) -> tuple[dict[str, list[Rule]], Mapping[str, int]]:
        """By intent the rules that no request meets, and how many were drawn. Many more are drawn of an intent with a
        rule that the first ones did not meet: it may be rare."""
        missed = {name: list(declared) for name, declared in rules.items()}
        drawn: Counter[str] = Counter()
        for number in range(MOST_WORLDS):
            left = [intent for intent in self.service.intents if number < WORLDS or missed.get(intent.name)]
            if not any(missed.values()):
                break
            rng = random.Random(f"{self.service.name} rules {samples.seed} {number}")
            place = self.maker.worlds.world("train", samples.seed, number * SMALL.tasks_per_world, 0, SMALL)
            for intent in left:
                for request in range(REQUESTS):
                    try:
                        source = self.maker.worlds.source(rng, "rules", place, "train", {})
                        goal = draw_goal(source, intent.name, foreign=request % 3 == 2)
                        if goal is not None and not source.break_device(intent.name, goal, solvable=request % 2 == 0):
                            goal = None
                        outcome = None if goal is None else source.outcome(intent.name, goal)
                    except Infeasible:
                        continue
                    if outcome is not None and intent.name in missed:
                        drawn[intent.name] += 1
                        met = Rule(outcome.kind, outcome.rule)  # type: ignore[arg-type]  # other ends are no rule's
                        missed[intent.name] = [rule for rule in missed[intent.name] if rule != met]
        return missed, drawn

    def approval(self, samples: Samples) -> CheckReport:
        """What it costs an expert never to ask the colleague."""
        played = zip(samples.expert_episodes(), samples.expert_episodes(errors=ALONE), strict=True)
        due = [alone for (task, asked), (_, alone) in played if asked.reward == 1 and self._must_ask(task)]
        if not due:
            raise NotChecked("no task needs a colleague's approval")
        lost = sum(episode.reward != 1 for episode in due)
        measured = f"never asking the colleague loses {lost} of {len(due)} ({lost / len(due):.0%})"
        if lost > len(due) / 2:
            return CheckReport(measured)
        remedy = f"Let the reward look at the table {APPROVALS!r} (compared=), which holds the decisions"
        return CheckReport(measured, (Problem(measured, remedy=remedy),))

    def _must_ask(self, task: Task) -> bool:
        return any(action.name == REQUEST for action in task.actions or ())

    def policy_rules(self, samples: Samples) -> CheckReport:
        """Numbered rules of the policy that nothing declared keeps, and the table of those that are kept."""
        return policy_rules.check(self.maker, samples.tasks())

    def words(self, samples: Samples) -> CheckReport:
        """Values by which users and experts take a request for another than it is."""
        problems: dict[tuple[str, str], Problem] = {}
        values = 0
        for task in samples.tasks():
            for request in _requests(task):
                for slot, text in self._said(request):
                    values += 1
                    for other in self.service.intents_in(text):
                        if other != request["kind"]:
                            what = f"its words stand in {text!r}, which users say for the slot {slot} ({of_task(task)})"
                            where = _where(self.service.intent(other))
                            remedy = "Give it a pattern that no value has, as heard=..., or say such values in quotes"
                            problems.setdefault((other, slot), Problem(what, where, f"{remedy} (kind 'quoted')"))
        return CheckReport(f"{values} values of {len(self.service.slots)} slots", tuple(problems.values()))

    def _said(self, request: AgendaRequest) -> Iterator[tuple[str, str]]:
        """The slots of a request with what users say for them."""
        if request["kind"] not in {intent.name for intent in self.service.intents}:
            return  # the environment may play other services, too
        for goal in (request["goal"], request["then"] or {}, request["fallback"] or {}):
            slots, described = split(goal)
            for name, value in slots.items():
                if name in self.service.slots and name not in described:
                    yield name, self.service.say(name, value)
            for name, value in described.items():
                if (how := self.service.slots[name].described) is not None:
                    yield name, self.service.kind(how).say(value, None)

    def slots(self, samples: Samples) -> CheckReport:
        """Slots that no plan asks for, and answers that are not read as what they say."""
        names = self.maker.intents(samples.size or SMALL.name)
        asked: dict[str, set[str]] = {name: set() for name in names}
        served: dict[str, Task] = {}
        problems: dict[tuple[str, str], Problem] = {}
        for task in samples.tasks():
            for request in _requests(task):
                if request["kind"] not in asked:
                    continue
                slots, described = split(request["goal"])
                stated = {slot: value for slot, value in slots.items() if slot not in described}
                for slot, problem in self._unread(task, stated):
                    problems.setdefault(("unread", slot), problem)
                ended, questions = self._questions(task, request["kind"], stated, described)
                asked[request["kind"]] |= questions
                if ended:
                    served.setdefault(request["kind"], task)
        for name, task in served.items():
            intent = self.service.intent(name)
            # worlds of this size may never need some
            used = asked[name] | explored(self.maker.worlds)[name].notes.slots
            for slot in (s.name for s in intent.slots if s.name not in used):
                what = f"its plan never asks for the slot {slot}, which the user of {of_task(task)} is to tell"
                problems["unasked", f"{name} {slot}"] = Problem(
                    what, _where(intent), "Use it in the plan, or remove it"
                )
        return CheckReport(f"{len(self.service.slots)} slots", tuple(problems.values()))

    def _unread(self, task: Task, stated: Mapping[str, Any]) -> Iterator[tuple[str, Problem]]:
        for name, value in stated.items():
            slot = self.service.slots[name]
            kind = self.service.kind(slot)
            for wording in several(slot.say):
                text = wording.format(self.service.say(name, value))
                if value not in [mention.value for mention in kind.find(text)]:
                    what = f"the answer {text!r} is not understood as {value!r}"
                    yield name, Problem(what, f"slot {name}, {of_task(task)}", "Correct its kind, or its say")
                    break

    def _questions(
        self, task: Task, name: str, stated: Mapping[str, Any], described: Mapping[str, str]
    ) -> tuple[bool, set[str]]:
        """Whether a request that tells nothing by itself is served to its end, and the slots that are asked for."""
        service, worlds = self.service, self.maker.worlds
        world, seen = worlds.domain.world(task), dict[str, Any]()
        user = shown_user(service, world, dict(agenda_of(task)["identity"]))
        request, asked = Request(name), set[str]()
        for _ in range(gold.MAX_MOVES if user is not None else 0):
            move = next_move(
                service.intent(name), request, seen, user or {}, service.today, authority=service.authority
            )
            if move.kind == "ask":
                asked.add(move.slot)
                if move.slot in stated:
                    request.slots[move.slot] = stated[move.slot]
                elif move.slot in described:
                    request.described[move.slot] = described[move.slot]
                else:
                    return False, asked
            elif move.kind == "call":
                result, _before = gold.tried(service, world, move)
                seen[call_key(move.tool, move.arguments)] = (
                    None if result.error else gold.noted(service, move.tool, result)
                )
            elif move.kind == "write":
                request.written.append(gold.noted(service, move.tool, gold.tried(service, world, move)[0]))
                seen = {}
            elif move.kind == "instruct":
                request.reported.append(gold.report_of_step(world, service, move, name))
                seen = {}
            else:
                return move.kind in ("finished", "answer", "transfer"), asked
        return False, asked


def _requests(task: Task) -> list[AgendaRequest]:
    agenda = task.agenda or {}
    return [] if agenda.get("impostor") else [r for r in agenda.get("requests", ()) if r["kind"] != "outside"]


def _where(intent: Intent) -> str:
    return f"intent {intent.name}{place_of(intent.plan)}"
