"""How much of a model's window policy and tools take, before anybody has said a word."""

from __future__ import annotations

from muarl.domains.checking import Checked, NotChecked, Problem, place_of
from muarl.domains.prompt_size import estimated_tokens
from muarl_tools.check_environment.context import CheckContext

LONG = 16_000
"""Tokens that are many for any model: half of what most of those that muarl trains can read at once."""
FEW = 20
REMEDY = "Shorten the policy, offer fewer tools, or put the rules into documents that agents search (KnowledgeDomain)"


def prompt(context: CheckContext) -> Checked:
    """Policy and tools leave room for a conversation."""
    if context.environment.is_benchmark:
        raise NotChecked("a benchmark's policy is its own")
    domain = context.domain
    told = {domain.policy_for(task): tuple(domain.specs_for(task)) for task in context.tasks(count=FEW)}
    kind = f"{type(domain).__name__}{place_of(type(domain))}"
    about = max((estimated_tokens(*one) for one in told.items()), default=0)
    if not context.models:
        what = f"policy and tools take about {about:,} tokens, before the first message"
        return Checked(f"about {about:,} tokens", (Problem(what, kind, REMEDY),) if about > LONG else ())
    measured, problems = [], []
    for model in context.models:
        count = max((model.count(*one) for one in told.items()), default=0)
        measured.append(f"{count:,} of {model.window:,} tokens of {model.name}")
        if 2 * count > model.window:
            left = "do not fit into" if count >= model.window else "take more than half of"
            what = f"policy and tools {left} what {model.name} reads at once ({count:,} of {model.window:,} tokens)"
            problems.append(Problem(what, kind, REMEDY))
    return Checked("; ".join(measured), tuple(problems))
