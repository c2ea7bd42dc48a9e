"""The rules on tasks, by name, with what each says."""

from __future__ import annotations

from collections.abc import Mapping

RULES: Mapping[str, str] = {
    "earned-by-nothing": "an agent that changes nothing and knows nothing earns the whole reward",
    "wrong-write-earns": "a gold write with another value, which leads to another state, earns the whole reward",
    "extra-write-earns": "one more write after the gold actions, which leads to another state, earns the whole reward",
    "part-earns": "the gold actions without one of several writes earn the whole reward",
    "expert-fails": "a scripted expert that serves by the policy does not earn the reward",
    "nothing-scored": "no part of the reward is decided by anything, so that every conversation earns it",
    "assertions-missing": "the reward has a part for assertions in words, and the task has none: it always counts 1",
    "communicate-unscored": "the task lists what must be said, and the reward has no part that looks at it",
    "assertions-unscored": "the task has assertions in words, and the reward has no part that looks at them",
    "communicate-given": "what must be said stands in the scenario, so that repeating the user passes",
    "communicate-short": "what must be said is so short that unrelated figures hold it",
    "communicate-underivable": "a figure that must be said follows from nothing that the gold actions show",
    "assertion-holds": "an assertion on the world holds before anything is done",
    "assertion-fails": "an assertion on the world does not hold after the gold actions",
    "gold-fails": "a gold action fails when it is replayed",
    "gold-no-effect": "a gold write changes nothing",
    "gold-unknown-tool": "a gold action calls a tool that there is not, or that its side does not have",
    "gold-breaks-policy": "the policy forbids a gold write in the state in which it is made",
    "gold-other-person": "a gold action changes a record of somebody other than the scenario's user",
    "gold-invented": "a gold write needs a value that neither the scenario nor the database gives",
    "gold-contradicts": "a gold write says of a person what the database says differently",
    "unknown-id": "the scenario names an id that the database does not have",
    "others-id": "the scenario names a record that belongs to somebody else",
    "persona-differs": "the scenario says of its user what the database says differently",
    "payment-missing": "the scenario speaks of a kind of payment that its user does not have",
    "not-identified": "the user is not told what the policy's tools need to identify them",
    "undecided": "the policy allows another end state, and the scenario does not say which is meant",
    "fact-undecided": "what the policy allows depends on a fact that the scenario leaves open",
    "no-fallback": "the right ending is a refusal, and the scenario does not say what the user does then",
    "duplicate": "the same task, up to names and numbers, stands twice",
    "duplicate-across-splits": "the same task stands in two splits",
}
"""All rules on single tasks, with what each says."""
OVERALL: Mapping[str, str] = {
    "idle-earns": "agents that change nothing and know nothing earn more than a quarter of the tasks",
    "asking-unpaid": "an expert that writes without asking earns nearly as much as one that asks",
}
"""Rules on all tasks together."""
