"""Recipes: the kinds of requests that generated tasks are made of, declared as intents of the kit.

A recipe's plan is what serves a request. The generator runs it in the task's world to find the gold calls; the scripted
expert runs it on what it reads. What else the kit derives of a service is not used here, since nothing of it fits BFCL:
users follow a script and never answer, no call needs a yes, and what is right is a list of calls turn by turn, with
later requests building on what earlier ones gave.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from muarl.basics.errors import OwnCodeError
from muarl.domains.base import World
from muarl.domains.generated import Infeasible
from muarl.domains.kit.declaration import Draw, DrawContext, Intent, PlanFunction, Slot, pattern
from muarl.domains.kit.moves import Move, Request, call_key
from muarl.domains.kit.plan import next_move
from muarl.domains.kit.records import PLACE, fill, plain
from muarl.domains.tasks import Action
from muarl.types.chat import ToolCall
from muarl_worlds.bfcl.observations import value_of
from muarl_worlds.bfcl.scenes import Size, limited

Slots = dict[str, str]
"""What a request says, in its own words."""
Memory = dict[str, Any]
"""What an agent knows from earlier in the conversation: "cwd" (folders below the root), "token", and the ids of what it
made last ("order", "ticket", "post", "booking"). Plans find it as if it were slots, and set it."""
REMEMBERED = ("cwd", "token", "order", "ticket", "post", "booking")


@dataclass(frozen=True)
class Scene(DrawContext):
    """What a request is drawn from. ``tables``: the live public state, class to attributes; ``user``: the memory."""

    rng: random.Random
    size: Size

    def pick(self, choices: Sequence[Any]) -> Any:
        """One of the choices. Infeasible if there is none."""
        if not choices:
            raise Infeasible
        return self.rng.choice(choices)

    def few(self, pool: Sequence[str]) -> Sequence[str]:
        """The names of a pool that occur at this size."""
        return limited(pool, self.size)


@dataclass(frozen=True)
class Recipe(Intent):
    """A kind of request. ``apis``: the classes whose tools it needs. ``says``: its wordings, in the imperative; those
    that leave out one slot are how a request sounds that lacks it.

    ``when``: whether a scene has a place for it. ``needs``: the login that must have come before. ``open``: its slots
    are free enough to tell splits apart wherever it stands; ``narrow``: they cannot tell splits apart at all. ``tiny``:
    it occurs in tiny worlds.
    """

    apis: tuple[str, ...] = ()
    when: Callable[[DrawContext], Any] = lambda scene: True
    needs: str = ""
    open: bool = False
    narrow: bool = False
    tiny: bool = False

    @cached_property
    def clauses(self) -> tuple[str, ...]:
        """The wordings that tell all."""
        return tuple(clause for clause in self.says if not self._left_out(clause))

    @cached_property
    def missing(self) -> Mapping[str, tuple[str, ...]]:
        """The wordings that leave a slot out, by that slot."""
        left = {clause: self._left_out(clause) for clause in self.says}
        return {name: tuple(c for c in left if left[c] == {name}) for name in sorted(set().union(*left.values()))}

    def slot(self, name: str) -> Slot:
        """The slot of a name."""
        return next(slot for slot in self.slots if slot.name == name)

    def _left_out(self, clause: str) -> set[str]:
        return {slot.name for slot in self.slots} - {name for name, _ in PLACE.findall(clause)}

    def draw(self, scene: Scene) -> Slots:
        """Values for all slots. Infeasible if the scene has none for one of them."""
        if not self.when(scene):
            raise Infeasible
        slots: Slots = {}
        known: dict[str, Any] = {}
        within = replace(scene, slots=known)
        for slot in self.slots:
            assert slot.draw is not None
            found: Any = slot.draw.records(within)
            one = scene.pick(found) if isinstance(found, Sequence) and not isinstance(found, str) else found
            known[slot.name] = one
            slots[slot.name] = str(plain(one[slot.draw.field] if slot.draw.field else one))
        return slots


def recipe(
    apis: str | tuple[str, ...], *says: str, slots: Sequence[Slot] = (), weight: float = 1.0, **more: Any
) -> Callable[[PlanFunction], Recipe]:
    """Make a recipe of the plan below it, whose name is the recipe's; see ``Recipe``."""
    classes = (apis,) if isinstance(apis, str) else apis
    return lambda plan: Recipe(plan.__name__, plan, says, tuple(slots), weight, apis=classes, **more)


def slot(name: str, form: str, draw: Callable[[Any], Any], field: str | None = None) -> Slot:
    """A slot. ``form``: a regular expression of its values. ``draw``: gives a sequence of values, one of which is
    drawn, or the one that was; they may be records, with the value in ``field``."""
    return Slot(name, pattern(form), ask=f"Which {name} is it?", draw=Draw(draw, field))


def one_of(values: Iterable[str]) -> str:
    """The form of slots with one of these values."""
    return "|".join(re.escape(value) for value in sorted(values, key=len, reverse=True))


def drawn(slot: Slot, draw: Callable[[Any], Any], field: str | None = None) -> Slot:
    """The slot with other values, see ``slot``."""
    return replace(slot, draw=Draw(draw, field))


def asked(slot: Slot, ask: str, *say: str, guess: tuple[str, ...]) -> Slot:
    """The slot with what an agent asks who lacks it, and how the user gives it. ``guess``: values that an agent might
    take without asking; all but the right one leave another state."""
    return replace(slot, ask=ask, say=say, guess=guess)


# serving


def begun(kind: str, slots: Mapping[str, str], memory: Memory) -> Request:
    """A request as its plan begins with it."""
    return Request(kind, {**memory, **slots})


def next_step(recipe: Recipe, request: Request, memory: Memory) -> Move:
    """The next thing to do for a request; what it has come to is remembered. OwnCodeError where a tool's answer is not
    what the plan takes it to be."""
    move = next_move(recipe, request, request.looked, {}, "")
    mine = {slot.name for slot in recipe.slots}
    memory |= {name: move.known[name] for name in REMEMBERED if name in move.known and name not in mine}
    return move


def take(request: Request, move: Move, value: Any) -> None:
    """Give a request what the call of its last step gave."""
    if move.kind == "call":
        request.looked[call_key(move.tool, move.arguments)] = value
    else:
        request.written.append(value)


def serve(recipe: Recipe, slots: Slots, memory: Memory, world: World) -> tuple[list[Action], str]:
    """Serve a request in a world: the calls, and what was asked for and must be said, empty where nothing was.

    Infeasible if a call fails, or if the world is not as the request takes it to be.
    """
    request, actions = begun(recipe.name, slots, memory), list[Action]()
    while True:
        try:
            move = next_step(recipe, request, memory)
        except OwnCodeError:
            raise Infeasible from None
        if move.kind not in ("call", "write"):
            return actions, "".join(fill(text, move.known) for text in move.tell)
        result = world.call("assistant", ToolCall("gold", move.tool, move.arguments))
        if result.error:
            raise Infeasible
        actions.append(Action(move.tool, move.arguments))
        take(request, move, value_of(result.content))


def number(value: float) -> str:
    """A number as it is said: at most two decimals, none where they are zero."""
    return f"{float(value):.2f}".rstrip("0").rstrip(".")


def quotable(text: str) -> bool:
    """Whether a text fits between the quotation marks of a request."""
    return bool(text) and '"' not in text and "\n" not in text
