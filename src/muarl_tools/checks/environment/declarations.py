"""Checks of what an environment consists of: policy, tools, sizes, audit rules, words of a small tokenizer, and how
much of a model's window policy and tools take.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from muarl.domains.auditing import AuditRules
from muarl.domains.authoring import nearest
from muarl.domains.base import Domain
from muarl.domains.checking import CheckReport, NotChecked, Problem, of_task, of_tool, place_of
from muarl.domains.prompt_size import estimated_tokens
from muarl.types.chat import Requestor, ToolSpec
from muarl_tools.checks.environment.samples import CheckContext

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What OpenAI-compatible servers take as a tool's name."""
CONTROL = "<|"
SIDES: tuple[Requestor, ...] = ("assistant", "user")
FEW = 20
"""Tasks that are enough where one is like another."""


def policy(context: CheckContext) -> CheckReport:
    """Every task has a policy to tell the agent."""
    if context.environment.is_benchmark:
        raise NotChecked("a benchmark's policy is its own")
    policies = {context.domain.policy_for(task) for task in context.tasks(count=FEW)}
    kind = type(context.domain)
    remedy = "Set policy on the Domain: text, or a Path beside the module"
    empty = any(not text.strip() for text in policies)
    found = (Problem("the agent is told no policy", f"{kind.__name__}{place_of(kind)}", remedy),) if empty else ()
    words = max((len(text.split()) for text in policies), default=0)
    return CheckReport(f"{words} words" + (f", {len(policies)} policies" if len(policies) > 1 else ""), found)


def tools(context: CheckContext) -> CheckReport:
    """Every tool has a name, a description and a JSON schema that a server takes."""
    domain = context.domain
    found = [problem for side in SIDES for spec in domain.tool_specs(side) for problem in _of_spec(domain, spec)]
    return CheckReport(f"{len(domain.tool_names())} tools, {len(context.writing)} of them write", tuple(found))


def _of_spec(domain: Domain, spec: ToolSpec) -> Iterator[Problem]:
    where = of_tool(domain, spec.name)
    if not TOOL_NAME.fullmatch(spec.name):
        remedy = "Use letters, digits, _ and -, at most 64"
        yield Problem("its name is refused by OpenAI-compatible servers", where, remedy)
    if (spec.description or "").strip() in ("", spec.name):
        yield Problem("the agent sees only its name", where, "Give it a docstring that says what it does")
    try:
        Draft202012Validator.check_schema(dict(spec.parameters))
    except SchemaError as problem:
        yield Problem(f"its parameters are no JSON schema: {problem.message}", where, "Correct its type hints")
        return
    absent = set(spec.parameters.get("required", ())) - set(spec.parameters.get("properties", {}))
    if absent:
        yield Problem(f"it requires {min(absent)!r}, which is none of its parameters", where)


def sizes(context: CheckContext) -> CheckReport:
    """The environment can be made at every size, and its tasks use only tools that it has there."""
    environment = context.environment
    found, looked = [], 0
    for size in environment.sizes or (None,):
        domain = environment.make_domain(size)
        for task in environment.make_tasks(context.split, 3, size=size, seed=context.seed):
            looked += 1
            for action in task.actions or ():
                known = domain.tool_names(action.requestor)
                if action.name not in known and not context.environment.is_benchmark:
                    hint = nearest(action.name, list(known))
                    of = f" at the size {size}" if size else ""
                    found.append(Problem(f"there is no tool {action.name!r}{of}{hint}", of_task(task)))
    many = len(environment.sizes) or 1
    return CheckReport(f"{looked} tasks of {many} size{'s' * (many > 1)}", tuple(found))


def audit_rules(context: CheckContext) -> CheckReport:
    """The audit rules name only tools and tables that there are."""
    environment = context.environment
    if environment.is_benchmark:
        raise NotChecked("a benchmark's rules are shared with other versions of it")
    rules = environment.audit_rules() if environment.audit is not None else type(context.domain).audit
    if rules is None or not rules.declared:
        raise NotChecked("it declares no audit rules, so that audits look only at what holds for any domain")
    domains = [environment.make_domain(size) for size in environment.sizes or (None,)]
    known = {name for domain in domains for side in SIDES for name in domain.tool_names(side)}
    named = _named(rules)
    found = []
    for field, names in named.items():
        for tool in sorted(names - known):
            what = f"AuditRules.{field} names the tool {tool!r}, which there is not{nearest(tool, sorted(known))}"
            found.append(Problem(what, remedy="It checks nothing as it is: correct the name or remove it"))
    return CheckReport(
        f"{len(set().union(*named.values()))} tools named, {len(rules.obligations)} obligations", (*found,)
    )


def _named(rules: AuditRules) -> dict[str, set[str]]:
    """The tools that rules name, by field. ``transfer_tools`` and ``kinds`` may name those of other versions."""
    return {
        "auth_tools": set(rules.auth_tools),
        "open_tools": set(rules.open_tools),
        "free_writes": set(rules.free_writes),
        "forbids": set(rules.forbids),
        "obligations": {tool for one in rules.obligations for tool in one.tools},
        "spoken": set(rules.spoken),
        "wished": set(rules.wished),
        "trusted_tools": set(rules.trusted_tools),
    }


def vocabulary(context: CheckContext) -> CheckReport:
    """What a small tokenizer gets a token for is distinct text without control tokens."""
    environment = context.environment
    lists = {"entities": environment.entities(), "phrases": environment.phrases()}
    if not any(lists.values()):
        raise NotChecked("it declares neither entities nor phrases (only `muarl base` needs them)")
    found = [problem for name, words in lists.items() for problem in _of_words(name, words)]
    return CheckReport(", ".join(f"{len(words)} {name}" for name, words in lists.items()), tuple(found))


def _of_words(name: str, words: Sequence[str]) -> Iterator[Problem]:
    twice = [word for word, times in Counter(words).items() if times > 1]
    if twice:
        yield Problem(f"{name} gives {twice[0]!r} more than once", "", "Give every piece once")
    for word in words:
        if not word or CONTROL in word:
            yield Problem(f"{name} gives {word!r}", "", f"Leave out empty text and text with {CONTROL}")


LONG = 16_000
"""Tokens that are many for any model: half of what most of those that muarl trains can read at once."""
REMEDY = "Shorten the policy, offer fewer tools, or put the rules into documents that agents search (KnowledgeDomain)"


def prompt(context: CheckContext) -> CheckReport:
    """Policy and tools leave room for a conversation."""
    if context.environment.is_benchmark:
        raise NotChecked("a benchmark's policy is its own")
    domain = context.domain
    told = {domain.policy_for(task): tuple(domain.specs_for(task)) for task in context.tasks(count=FEW)}
    kind = f"{type(domain).__name__}{place_of(type(domain))}"
    about = max((estimated_tokens(*one) for one in told.items()), default=0)
    if not context.models:
        what = f"policy and tools take about {about:,} tokens, before the first message"
        return CheckReport(f"about {about:,} tokens", (Problem(what, kind, REMEDY),) if about > LONG else ())
    measured, problems = [], []
    for model in context.models:
        count = max((model.count(*one) for one in told.items()), default=0)
        measured.append(f"{count:,} of {model.window:,} tokens of {model.name}")
        if 2 * count > model.window:
            left = "do not fit into" if count >= model.window else "take more than half of"
            what = f"policy and tools {left} what {model.name} reads at once ({count:,} of {model.window:,} tokens)"
            problems.append(Problem(what, kind, REMEDY))
    return CheckReport("; ".join(measured), tuple(problems))
