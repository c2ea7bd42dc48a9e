"""``pass^k``: the chance that k independent attempts at a task all succeed.

It is estimated without bias from n attempts of which c succeeded as C(c,k)/C(n,k), and averaged over tasks (tau-bench,
arXiv 2406.12045).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb
from statistics import fmean

from muarl.accounts.intervals import Estimate, mean_interval
from muarl.accounts.success import by_task
from muarl.types.episode import Episode


def pass_hat(successes: int, trials: int, k: int) -> float:
    """The unbiased estimate C(c,k)/C(n,k) for one task. ValueError unless 0 <= c <= n and 1 <= k <= n."""
    if not 0 <= successes <= trials or not 1 <= k <= trials:
        raise ValueError(f"pass^{k} cannot be estimated from {successes} successes in {trials} trials")
    return comb(successes, k) / comb(trials, k)


def pass_hats(episodes: Iterable[Episode], ks: Sequence[int] = (1, 2, 3, 4)) -> dict[int, Estimate]:
    """pass^k for each k that some task has k scored attempts for; a mean over those tasks (``n`` says how many)."""
    return pass_hats_of(by_task(episodes).values(), ks)


def pass_hats_of(tasks: Iterable[Sequence[bool]], ks: Sequence[int] = (1, 2, 3, 4)) -> dict[int, Estimate]:
    """The same from the outcomes of each task's attempts."""
    tried, out = list(tasks), dict[int, Estimate]()
    for k in ks:
        values = [pass_hat(sum(t), len(t), k) for t in tried if len(t) >= k]
        if values:
            out[k] = Estimate(fmean(values), mean_interval(values), len(values))
    return out
