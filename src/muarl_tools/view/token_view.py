"""One episode by token: what was sampled, how likely it was, and what was only given."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.pages.charts import percent
from muarl.pages.markup import Child, Html, join, tag
from muarl.pages.table import Cell, table, to_html
from muarl.report.sections import facts
from muarl_tools.view.layout import (
    signed,
)  # fmt: skip
from muarl_tools.view.runs import EpisodeDetails, Run
from muarl_tools.view.tokens import pieces

LONG = 40
"""Tokens at the beginning of a context that are shown without being asked for."""
TOKENS = 6000
"""Tokens shown on one page."""


def token_view(run: Run, told: EpisodeDetails) -> Html:
    """The tokens of an episode that has a trace: those that were sampled with their log-probabilities."""
    trace = told.episode.tokens
    assert trace is not None
    advantage, _ = run.advantage(told)
    by_turn = any(turn.advantage is not None for turn in told.episode.turns)
    each = told.episode.token_advantages() if by_turn else None
    texts = pieces(run.tokenizer, trace.ids[:TOKENS])
    out: list[Html] = []
    current: list[Child] = []
    mine = False
    begins = {0, *trace.restarts}
    at = 0  # where the current stretch begins
    for n, text in enumerate(texts):
        if trace.loss_mask[n] != mine or n in trace.restarts:
            out.append(_given(current, at, trace.restarts) if at in begins and not mine else _stretch(current, mine))
            current, mine, at = [], trace.loss_mask[n], n
        shown = text.replace("\n", "⏎\n")
        if mine:
            chance = trace.logprobs[n]
            title = f"{n}: id {trace.ids[n]}, log-probability {chance:.4g}, version {trace.versions[n]}"
            if advantage is not None:
                title += f", advantage {signed(advantage if each is None else each[n])}"
            current.append(tag("span", shown, class_=f"tok l{_level(chance)}", title=title, tabindex=0))
        else:
            # Only what was sampled is told in full; given tokens are many and say nothing but their id.
            current.append(shown if run.tokenizer is not None else f"{shown} ")
    out.append(_stretch(current, mine))
    sampled = [(trace.logprobs[n], n) for n in range(len(trace)) if trace.loss_mask[n]]
    mean = sum(chance for chance, _ in sampled) / len(sampled) if sampled else 0.0
    legend = tag(
        "p",
        tag("span", "given", class_="given-key"),
        " no loss · sampled, by log-probability: ",
        [tag("span", text, class_=f"tok l{i}") for i, text in enumerate(("≥ −0.01", "−0.1", "−0.7", "−2.3", "below"))],
        class_="legend tokens-key",
    )
    said = [("Sampled", f"{len(sampled):,} of {len(trace):,}")]
    if trace.restarts:
        said.append(("Contexts", f"{len(trace.restarts) + 1:,}"))
    if sampled:
        said += [("Mean log-probability", f"{mean:.3f}"), ("Perplexity", f"{2.718281828**-mean:.3f}")]
    if advantage is not None:
        said.append(("Advantage of each" if each is None else "Mean advantage of turns", signed(advantage)))
    more = len(trace) - TOKENS
    missing = "The tokenizer is not available, so ids are shown instead of text." if run.tokenizer is None else None
    return join(
        facts(said),
        legend,
        tag("p", missing, class_="soft") if missing else None,
        tag("div", out, class_="tokens"),
        tag("p", f"… and {more:,} more tokens", class_="soft") if more > 0 else None,
        _rarest(texts, sampled, trace.ids),
    )


def _stretch(parts: list[Child], mine: bool) -> Html:
    return tag("span", parts, class_="mine" if mine else "given") if parts else Html("")


def _given(parts: list[Child], at: int, restarts: Sequence[int]) -> Html:
    """What the agent was told at the beginning of a context: if it is long, it is not what one comes to see."""
    if len(parts) <= LONG:
        return _stretch(parts, False)
    text = f"{len(parts):,} tokens given "
    text += "anew, without the thoughts of earlier turns" if at in restarts else "at first"
    return tag("details", tag("summary", text), _stretch(parts, False))


def _level(chance: float) -> int:
    """How likely a token was, in five steps."""
    return next((i for i, bound in enumerate((-0.01, -0.1, -0.7, -2.3)) if chance >= bound), 4)


def _rarest(texts: list[str], sampled: list[tuple[float, int]], ids: Sequence[int]) -> Html | None:
    """The tokens that the policy itself found least likely."""
    rare = [(chance, n) for chance, n in sorted(sampled)[:10] if chance < -0.1 and n < len(texts)]
    if not rare:
        return None
    rows = []
    for chance, n in rare:
        around = join(tag("span", "".join(texts[max(0, n - 8) : n]), class_="soft"), tag("b", texts[n]))
        cells = (f"{n:,}", f"{ids[n]}", f"{chance:.2f}", percent(2.718281828**chance))
        rows.append((Cell("", page=around), *cells))
    head = ["After", "Place", "Id", "Log-probability", "Chance"]
    return tag("section", tag("h2", "The least likely choices"), to_html(table(head, rows, kind="rare")))
