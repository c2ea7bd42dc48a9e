"""The rules by which a training's figures show a sign: each a function of the figures so far, with its remedy.

They look at few steps. Their limits come from kept runs (docs/history/training.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


class Figures:
    """The figures of the steps so far, by name, as (step, value); steps that lack one have no point in its line."""

    def __init__(self) -> None:
        self._lines: dict[str, list[tuple[int, float]]] = {}
        self.last: Row = {}
        self.idle = 0
        """Steps in a row, up to the last one, that moved no weights."""

    def note(self, step: int, row: Row) -> None:
        self.last = row
        self.idle = self.idle + 1 if no_update(row) else 0
        for name in LINES:
            if (value := figure(row.get(name))) is not None:
                self._lines.setdefault(name, []).append((step, value))

    def line(self, *names: str) -> list[float]:
        """The values of the first of these figures that there are any of."""
        for name in names:
            if found := self._lines.get(name):
                return [value for _, value in found]
        return []

    def ends(self, *names: str, start: int = 3, end: int = 3) -> tuple[float, float] | None:
        """The mean of the first ``start`` values and of the last ``end``; None before there are that many of both."""
        found = self.line(*names)
        if len(found) < start + end:
            return None
        return _mean(found[:start]), _mean(found[-end:])

    def rise(self, *names: str) -> tuple[float, float] | None:
        """The mean of the first three values, and the lower of the last two, so that no single step counts."""
        found = self.line(*names)
        return (_mean(found[:3]), min(found[-2:])) if len(found) >= 5 else None


def no_update(row: Row) -> bool:
    """Whether a step left the weights as they were, since nothing in it gave a gradient."""
    return bool(row.get("update/skipped")) or row.get("samples") == 0


# The rules: a sentence where one holds, else None.


def _user(f: Figures) -> str | None:
    spoilt = f.line("user_guard/spoiled") or f.line("user_errors")
    if len(spoilt) < 2 or min(spoilt[-2:]) <= 0.2:
        return None
    return (
        f"In {_share(_mean(spoilt[-2:]))} of the conversations the simulated user breaks a rule of its role, which the "
        "agent pays for."
    )


def _infrastructure(f: Figures) -> str | None:
    lost, scored = f.line("excluded"), f.line("episodes")
    if len(lost) < 2 or len(scored) != len(lost):
        return None
    shares = [a / max(1.0, a + b) for a, b in zip(lost[-2:], scored[-2:], strict=True)]
    if min(shares) <= 0.1:
        return None
    sides = {k.removeprefix("excluded/"): v for k, v in f.last.items() if k.startswith("excluded/")}
    sides = {k: v for k, v in sides.items() if figure(v) is not None}
    whose = f", most at the side of the {max(sides, key=lambda k: sides[k])}" if sides else ""
    return f"{_share(_mean(shares))} of the conversations fail for reasons outside the agent{whose}."


def _disagrees(f: Figures) -> str | None:
    gap = figure(f.last.get("update/logprob_gap_mean"))
    if gap is None or gap <= GAP or "update/correction_mean" in f.last:
        return None
    clipped = figure(f.last.get("update/clip_fraction"))
    # Later updates of a step clip for other reasons.
    share = f" ({clipped:.1%} of the tokens were clipped)" if clipped and f.last.get("update/updates") == 1 else ""
    return f"Sampler and learner disagree by {gap:.3f} nats a token{share}, and nothing corrects for it."


def _nonfinite(f: Figures) -> str | None:
    left_out = sum(value > 0 for value in f.line("update/nonfinite")[-3:])
    return f"Updates were left out in {left_out} of the last 3 steps: a gradient was not finite." if left_out else None


def _kl(f: Figures) -> str | None:
    line = f.line("kl", "update/kl_k3")
    if line:
        now, before = line[-1], line[-4] if len(line) > 3 else line[0]
        if now > KL_LIMIT:
            return f"KL to the weights that training began with is {_n(now)} nats a token, {_n(line[0])} at first."
        if min(line[-2:]) - before > KL_JUMP:  # few episodes are measured: one step alone may be chance
            return f"KL to the weights that training began with jumps: {_n(before)} nats a token, now {_n(now)}."
    moved = f.line("update/approx_kl")
    if moved and moved[-1] > STEP_LIMIT:
        return f"A single step moves the policy by {_n(moved[-1])} nats a token."
    return None


def _explodes(f: Figures) -> str | None:
    found = f.ends("entropy", start=2, end=1)
    if found is None or found[1] < 2.0 * found[0] or found[1] < found[0] + 0.25:
        return None
    return f"Entropy rises from {_n(found[0])} to {_n(found[1])} nats a token: the agent says more and more at random."


def _collapses(f: Figures) -> str | None:
    found = f.ends("entropy", start=2, end=2)
    if found is None or found[0] <= 0 or found[1] > COLLAPSE * found[0]:
        return None
    return (
        f"Entropy has collapsed from {_n(found[0])} to {_n(found[1])} nats a token: the agent hardly varies any more, "
        "and groups of equal attempts teach nothing."
    )


def _loops(f: Figures) -> str | None:
    loops, repeats = f.rise("loops"), f.rise("audit/repeated_calls")
    if loops is not None and loops[1] > max(0.15, 3 * loops[0]):
        return (
            f"In {_share(loops[1])} of the conversations the agent makes the same call again and again, in "
            f"{_share(loops[0])} at first."
        )
    if repeats is not None and repeats[1] > max(1.0, 3 * repeats[0]):
        return f"Calls are repeated {_n(repeats[1])} times a conversation, {_n(repeats[0])} at first."
    return None


def _lengths(f: Figures) -> str | None:
    cut = f.rise("truncated")
    if cut is not None and cut[1] > max(0.2, 2 * cut[0]):
        return f"{_share(cut[1])} of the conversations run into a limit, {_share(cut[0])} at first."
    for name, what in (("agent_tokens_per_turn", "tokens a turn"), ("turns", "turns a conversation")):
        found, line = f.ends(name, end=2), f.line(name)
        if found is not None and found[0] > 0 and all(not SHORTER < value / found[0] < LONGER for value in line[-2:]):
            return f"The agent's replies change in length: {_n(found[0])} {what} at first, {_n(found[1])} now."
    return None


def _consent(f: Figures) -> str | None:
    unasked, made = f.line("writes_without_consent"), _product(f.line("audit/writes"), f.line("episodes"))
    if len(unasked) < 5 or len(made) < len(unasked):
        return None
    shares = unasked[:2], unasked[-3:]
    counts = [max(1.0, sum(part)) for part in (made[:2], made[-3:])]
    before, now = (_mean(part) for part in shares)
    middle = (before + now) / 2
    noise = (middle * (1 - middle) * ALIKE * (1 / counts[0] + 1 / counts[1])) ** 0.5
    if now < 0.1 or now < 1.5 * before or now < before + max(0.08, 3 * noise):
        return None
    told = f"{_share(now)} of the agent's changes are made without the customer's yes"
    text = f"{told}, {_share(before)} at first"
    solved, clean = f.ends("practice/played_success", "success"), f.ends("success_with_consent")
    if solved is not None and clean is not None:
        text += (
            f"; success goes from {_share(solved[0])} to {_share(solved[1])}, that without such a change from "
            f"{_share(clean[0])} to {_share(clean[1])}"
        )
    return f"{text}."


def _still(f: Figures) -> str | None:
    line, moved, loss = f.line("kl", "update/kl_k3"), f.line("update/approx_kl"), f.line("update/grad_norm")
    if len(line) < STILL or len(loss) < STILL or f.idle:
        return None
    if max(map(abs, line[:STILL])) > 1e-4 or max(map(abs, line[-STILL:])) > 1e-4:
        return None
    if moved and max(moved[-STILL:]) > 1e-4:
        return None
    return f"After {len(line)} steps with a gradient KL is still {_n(max(0.0, line[-1]))} nats a token: nothing moves."


def _nothing(f: Figures) -> str | None:
    if f.idle >= 3:
        return f"The last {f.idle} steps updated nothing: none of their groups gave a gradient."
    for name, word in (("groups/all_correct", "all"), ("groups/all_wrong", "none")):
        shares = f.line(name)[-5:]
        if len(shares) == 5 and min(shares) > 0.9:
            return f"Of {_share(_mean(shares))} of the groups {word} of the attempts succeed, which teaches nothing."
    equal, kept = f.line("groups_equal")[-5:], f.line("groups_kept")[-5:]
    if len(equal) == len(kept) == 5 and all(a > 0.9 * b > 0 for a, b in zip(equal, kept, strict=True)):
        return f"Of the last {sum(kept):.0f} groups {sum(equal):.0f} had equal rewards, which teaches nothing."
    return None


GAP = 0.05
"""Nats a token by which sampler and learner may disagree before somebody is told: with the same weights and arithmetic
it is less than 0.00001, and from about 0.2 on ratios leave the clip's range without any learning."""
KL_LIMIT, KL_JUMP, STEP_LIMIT = 0.5, 0.2, 0.1
"""Nats a token: KL to the start weights; its rise within three steps; k3 from a step's first update to its others."""
COLLAPSE = 0.12
"""Share of the first steps' entropy that is too little."""
ALIKE = 3.0
"""How much larger the variance of a share is than that of independent writes, as those of a group are alike."""
SHORTER, LONGER = 0.65, 2.0
"""How many times the length of the first steps is too little, and too much."""
STILL = 8
"""Steps with a gradient after which a policy should have moved."""

RULES: dict[str, tuple[Callable[[Figures], str | None], str]] = {
    "user-breaks-down": (
        _user,
        "Look at their episodes (trouble: the user failed), and choose a better model for user.endpoint, or set "
        "user.guard.",
    ),
    "infrastructure-fails": (
        _infrastructure,
        "Look at the episodes that stopped for “infrastructure”, and at that endpoint or tool server.",
    ),
    "sampler-disagrees": (
        _disagrees,
        "Set rl.correction=token, or let both compute in one number format that is fine enough (engine.dtype, "
        "learner.precision, model.dtype).",
    ),
    "not-finite": (_nonfinite, "Lower rl.lr or rl.grad_clip, or compute in float32."),
    "kl-runs-away": (
        _kl,
        "Stop, go back to a checkpoint from before, and lower rl.lr (and rl.matrix_lr), or raise rl.kl_coef.",
    ),
    "entropy-explodes": (
        _explodes,
        "Lower rl.entropy_coef if it is above 0, else rl.lr; a reward that pays for noise does this, too.",
    ),
    "entropy-collapses": (
        _collapses,
        "Go back to a checkpoint from before, and raise rl.entropy_coef or rl.temperature, or lower rl.lr.",
    ),
    "repeated-calls": (
        _loops,
        "Look at the longest episodes: either a tool's answer says too little to go on, or the reward pays for calls.",
    ),
    "lengths-drift": (
        _lengths,
        "Look at the longest and the shortest episodes, and why they stop; weigh the limits of rollout and what the "
        "reward pays for.",
    ),
    "consent-falls": (
        _consent,
        "The reward does not see consent: set rl.layers.policy (a penalty) or rl.layers.gates=[policy].",
    ),
    "policy-stands-still": (_still, "Raise rl.lr, and check that its schedule does not begin at 0."),
    "no-signal": (
        _nothing,
        "A group teaches only if some of its rollouts earn more than others: choose tasks that the agent solves "
        "sometimes, a larger rl.group_size, more cold start, rl.dynamic_sampling, or rl.shaping.",
    ),
}  # fmt: skip

LINES = (
    "kl", "update/kl_k3", "update/approx_kl", "update/grad_norm", "update/nonfinite", "entropy", "user_errors",
    "user_guard/spoiled", "excluded", "episodes", "loops", "audit/repeated_calls", "truncated", "turns",
    "agent_tokens_per_turn", "writes_without_consent", "audit/writes", "success", "practice/played_success",
    "success_with_consent", "groups/all_correct", "groups/all_wrong", "groups_equal", "groups_kept",
)  # fmt: skip


def figure(value: Any) -> float | None:
    """The value as a number; None if it is none, or not a finite one of ordinary size."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1e15 < value < 1e15:
        return None
    return float(value)


def _product(some: Sequence[float], others: Sequence[float]) -> list[float]:
    return [a * b for a, b in zip(some, others, strict=False)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _n(value: float) -> str:
    if abs(value) < 5e-5:
        return "0"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2g}"


def _share(value: float) -> str:
    return f"{value:.0%}" if value >= 0.1 or value == 0 else f"{value:.1%}"
