"""``pass^k``: the chance that k independent attempts at a task all succeed.

It is estimated without bias from n attempts of which c succeeded as C(c,k)/C(n,k), and averaged over tasks (tau-bench,
arXiv 2406.12045).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


def few_tasks(counted: float | None, tasks: float | None) -> str:
    """Of how many of the tasks with scored attempts pass^k is a mean: "1 of 10 tasks"; empty where it is of all, or
    where that is not known."""
    return "" if counted is None or tasks is None or counted >= tasks else f"{counted:.4g} of {tasks:.4g} tasks"


def with_few_tasks(text: str, counted: float | None, tasks: float | None) -> str:
    """What is said of pass^k, and behind it in brackets of how many tasks it is; see ``few_tasks``."""
    few = few_tasks(counted, tasks)
    return f"{text} ({few})" if few else text


def few_behind(hats: Mapping[int, Estimate], k: int) -> str:
    """The same of pass^k as ``pass_hats`` gives it; empty where there is none."""
    return few_tasks(hats[k].n, hats[1].n) if k in hats and 1 in hats else ""


def pass_hat_label(hats: Mapping[int, Estimate], k: int) -> str:
    """What tables call pass^k of these: "pass^4", or "pass^4 (1 of 10 tasks)" where the others have fewer attempts."""
    return with_few_tasks(f"pass^{k}", hats[k].n, hats[1].n if 1 in hats else None)
