"""What an agent of a service may do alone, and what only with a second person's approval.

    Service(..., limits=(Limit("pay_claim", record="claim", amount="c.amount", above=250),))

Plans stay as they are: where one comes to ``it.write("pay_claim", ...)`` above the limit, the proposal says that
approval is needed, and behind the user's yes the colleague is asked (``colleague``) before the tool is called. If it is
declined, the request ends there, and the user is told why. The tool itself refuses nothing: the agent must keep to its
policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.domains.auditing import Obligation, Occasion
from muarl.domains.kit.colleague import APPROVED, DECLINED, REQUEST, ApprovalDomain, Colleague
from muarl.domains.kit.declaration import several
from muarl.domains.kit.records import fill, show

ANSWER = "_approval"
"""What plans' texts call the colleague's answer."""
TOLD_DECLINED = (
    r"declin|refus|reject|turn(?:ed|s)? (?:\w+ )?down|not (?:been )?(?:\w+ )?(?:approv|agree|authori[sz])|disapprov"
    r"|said no|no approval|can(?:no|['’])t|can not|unable|not (?:possible|allowed|able)|won['’]t|will not"
)
"""Words that tell somebody that a request was declined."""


@dataclass(frozen=True)
class Limit:
    """What an agent may not do alone."""

    tool: str
    """The write."""
    record: str
    """Where the id of the record stands that it is about, as in texts: a slot ("claim") or a field of what the plan has
    set ("c.claim_id")."""
    amount: str = ""
    """Likewise, where the number stands that must not be ``above`` the limit."""
    above: float | None = None
    when: Callable[[Any], Any] | None = None
    """A function of the plan in place of ``above``, for other conditions."""
    told: str = ""
    """The condition of ``when`` in the policy's words, such as "for a controlled medicine"."""
    reason: str = ""
    """What the colleague is told, with places as in the plan's texts."""
    form: str = "money"
    """The form of amounts in texts, as in the plan's ("money", "euro", "pound", "plain")."""

    def __post_init__(self) -> None:
        where = f"limit of {self.tool}"
        if (self.above is None) == (self.when is None):
            raise ConfigError(f"{where}: give above, the most that an agent may do alone, or when, and not both")
        if self.above is not None and not self.amount:
            raise ConfigError(f"{where}: amount: say where the number stands that must not be above {self.above}")
        if self.when is not None and not self.told:
            raise ConfigError(f"{where}: told: say the condition in the policy's words, such as 'for a new supplier'")
        if not self.record:
            raise ConfigError(f"{where}: record: say where the id of the record stands, such as a slot's name")
        try:
            show(float(self.above or 0), self.form)
        except LookupError as problem:
            raise ConfigError(f"{where}: form: {problem.args[0]}") from None

    @property
    def most(self) -> str:
        """What may be done alone at most, in words; empty where there is no such number."""
        return "" if self.above is None else show(float(self.above), self.form)

    @property
    def condition(self) -> str:
        """When approval is needed, in the policy's words."""
        return self.told or f"above {self.most}"


@dataclass(frozen=True)
class Authority:
    """The limits of a service and the colleague who may agree to more."""

    limits: Sequence[Limit]
    colleague: Colleague

    def of(self, tool: str) -> Iterator[Limit]:
        """The limits of a tool."""
        return (limit for limit in self.limits if limit.tool == tool)

    @property
    def declined(self) -> tuple[str, ...]:
        """What users are told of a request that was declined."""
        name = self.colleague.name
        return (
            f"{name} has declined it because {{{ANSWER}.because}}",
            f"it needs the approval of {name}, who has declined it: {{{ANSWER}.because}}",
        )

    def proposed(self, text: str) -> str:
        """A proposal that says that approval is needed."""
        name = self.colleague.name
        if text.endswith("?"):
            return f"This needs the approval of {name}. {text}"
        return f"{text}, for which I need the approval of {name}"

    def reason(self, limit: Limit, values: Mapping[str, Any]) -> str:
        """What the colleague is told."""
        return fill(limit.reason, values) if limit.reason else f"The request is {limit.condition}."

    def policy_text(self, caller: str) -> str:
        """The section of the policy that tells of it. ``caller``: what a user is called."""
        name, lines = self.colleague.name, ["## What you may do alone", ""]
        for limit in self.limits:
            alone, more = (f" up to {limit.most}", "above that") if limit.most else ("", limit.condition)
            lines.append(f"- {limit.tool}: by yourself{alone}; {more} only with the approval of {name}.")
        lines += [
            "",
            f"Where you need approval, look everything up first and refuse what the rules forbid. Tell the {caller} "
            f"what would be done and that it needs the approval of {name}, and wait for a clear yes. Then call "
            f"{REQUEST} with the name of the tool, the record's id, the amount and the reason. If it is approved, go "
            f"ahead without asking the {caller} again. If it is declined, do not do it, and tell the {caller} why. If "
            "something is missing, ask again with it. Never ask for approval that you do not need. Nobody but "
            f"{name} can approve: what the {caller} says of it does not count.",
        ]
        return "\n".join(lines)

    def trespass(self, limit: Limit, needed: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]) -> str:
        """Why a write was beyond the agent's authority, in half a sentence. ``needed``: what should have been asked;
        ``answers``: what was asked, each with the decision."""
        name = self.colleague.name
        about = [one for one in answers if all(one.get(key) == needed.get(key) for key in ("action", "record_id"))]
        decided = about[-1].get("decision") if about else None
        what = f"it is {limit.condition}"
        if decided == DECLINED:
            return f"{what}, and {name} had declined it"
        if decided == APPROVED:
            return f"{what}, and {name} had approved no more than {about[-1].get('amount')}"
        return f"{what}, and {name} had not approved it"

    def obligation(self, caller: str) -> Obligation:
        """What must be said once a request was declined."""
        text = f"After a request was declined, the {caller} must be told that it was."
        return Obligation("declined", frozenset({REQUEST}), text, (TOLD_DECLINED,), when="after", applies=_is_declined)

    def texts(self) -> tuple[str, ...]:
        """All that is said of it besides what stands in plans, for a tiny model's vocabulary."""
        return (*self.declined, *several(self.colleague.because), *(limit.reason for limit in self.limits))


def _is_declined(occasion: Occasion) -> bool:
    """Whether the colleague declines what is asked, as the world tells it."""
    kit = None if occasion.world is None else occasion.world.toolkit("assistant")
    return isinstance(kit, ApprovalDomain) and kit.decision(**occasion.arguments)["decision"] == DECLINED


def authority_of(name: str, limits: Sequence[Limit], domain: type, kinds: Mapping[str, str]) -> Authority | None:
    """A service's authority; None without limits. ``kinds``: the domain's tools. ConfigError for a limit on what is no
    write, and where nobody can be asked."""
    if not limits:
        return None
    if wrong := [one for one in limits if not isinstance(one, Limit)]:
        raise ConfigError(f"{name}: limits: {wrong[0]!r} is no Limit")
    if not issubclass(domain, ApprovalDomain):
        raise ConfigError(
            f"{name}: limits: the domain has nobody to ask: derive {domain.__name__} from muarl.kit.ApprovalDomain"
        )
    for limit in limits:
        if kinds.get(limit.tool) != "write" or limit.tool == REQUEST:
            there = ", ".join(tool for tool, kind in kinds.items() if kind == "write" and tool != REQUEST)
            raise ConfigError(f"{name}: limits: {limit.tool!r} is no tool that writes; those are {there}")
        if domain.colleague.needs_amount(limit.tool) and not limit.amount:
            raise ConfigError(
                f"{name}: limits: {limit.tool}: {domain.colleague.name} asks for the amount: say where it stands "
                f"(Limit(amount=...)), or that there is none: Colleague(no_amount=({limit.tool!r},))"
            )
    return Authority(tuple(limits), domain.colleague)
