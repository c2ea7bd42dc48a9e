"""Small charts: lines and areas as inline SVG, score strips and share bars as HTML; all without scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import fmean

from muarl.pages.markup import Html, join, tag

WIDTH, HEIGHT = 340, 168
LEFT, RIGHT, TOP, BOTTOM = 40, 10, 10, 22
DIGIT, GAP = 6.5, 6
"""Room for a character of a label, and between label and area."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """One line."""

    label: str
    points: Sequence[Point]
    """(x, y) in order of x."""
    colour: str = "after"
    """A class of the style sheet."""
    dots: bool = False
    band: Sequence[tuple[float, float, float]] = ()
    """(x, low, high), drawn behind the line."""


def percent(value: float) -> str:
    """A share as a reader wants it: 91%, 4.2%, 0.3%, 0%."""
    if value != 0 and abs(value) < 0.0995:
        return f"{value:.1%}"
    return f"{value:.0%}"


def number(value: float) -> str:
    """A figure in few characters: 0.0012, 0.41, 12.3, 1,234."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 1:
        return f"{value:.1f}"
    return f"{value:.2g}" if size >= 0.0001 else f"{value:.1e}"


def ticks(low: float, high: float, about: int = 3) -> list[float]:
    """Round values that span [low, high], about as many as asked for; at least two."""
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # the same but for rounding
        high = low + (abs(low) or 1.0)
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


EXACT = 2000
"""Points up to which an average is summed anew for each."""


def smooth(points: Sequence[Point]) -> list[Point]:
    """A centred moving average over about a tenth of the points; fewer than 12 points stay as they are."""
    if len(points) < 12:
        return list(points)
    half = max(1, len(points) // 20)
    out = []
    # Sums so far, so that long lines do not take the square of their length.
    sums = [0.0, *accumulate(y for _, y in points)] if len(points) > EXACT else None
    for i, (x, y) in enumerate(points):
        # Near the ends the window shrinks on both sides, else the line would lag behind the figures.
        reach = min(half, i, len(points) - 1 - i)
        if sums is None:
            out.append((x, fmean(y for _, y in points[i - reach : i + reach + 1])))
        else:
            mean = (sums[i + reach + 1] - sums[i - reach]) / (2 * reach + 1)
            out.append((x, mean if reach and math.isfinite(mean) else y))
    return out


class _Plane:
    """Maps data to the chart's coordinates. ``left``: where its area begins, beside the labels of ``y_ticks``."""

    def __init__(self, xs: Sequence[float], y_ticks: Sequence[float], shares: bool) -> None:
        self.x0, self.x1 = min(xs), max(xs)
        self.y0, self.y1 = y_ticks[0], y_ticks[-1]
        self.labels = {y: f"{y * 100:.10g}%" if shares else f"{y:.10g}" for y in y_ticks}
        self.left = max(LEFT, math.ceil(DIGIT * max(map(len, self.labels.values()))) + GAP)

    def x(self, value: float) -> float:
        span = self.x1 - self.x0
        share = (value - self.x0) / span if span else 0.5
        return round(self.left + share * (WIDTH - self.left - RIGHT), 2)

    def y(self, value: float) -> float:
        share = (value - self.y0) / (self.y1 - self.y0)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 2)

    def path(self, points: Sequence[Point]) -> str:
        return "M" + "L".join(f"{self.x(x)} {self.y(y)}" for x, y in points)


def _axes(plane: _Plane, x_label: str) -> Html:
    marks: list[Html] = []
    for y, label in plane.labels.items():
        at = plane.y(y)
        marks.append(tag("line", x1=plane.left, x2=WIDTH - RIGHT, y1=at, y2=at, class_="grid"))
        marks.append(tag("text", label, x=plane.left - GAP, y=at + 3.5, class_="end"))
    whole = sorted({round(plane.x0), round((plane.x0 + plane.x1) / 2), round(plane.x1)})
    for n, x in enumerate(whole):
        side = "start" if n == 0 else "end" if n == len(whole) - 1 else "middle"
        text = f"{x_label} {x:,}" if n == 0 else f"{x:,}"
        marks.append(tag("text", text, x=plane.x(x), y=HEIGHT - 5, class_=side if len(whole) > 1 else "middle"))
    return join(marks)


def _hover(plane: _Plane, lines: Sequence[Series], shares: bool, x_label: str) -> Html:
    """Invisible columns that tell a step's figures when the pointer rests on them; no script is needed."""
    show = percent if shares else number
    labels: dict[float, list[str]] = {}
    for line in lines:
        for x, y in line.points:
            prefix = f"{line.label} " if len(lines) > 1 else ""
            labels.setdefault(x, []).append(f"{prefix}{show(y)}")
    xs = sorted(labels)
    if len(xs) > 400:  # nobody can point at a column of less than a pixel
        xs = xs[:: math.ceil(len(xs) / 400)]
    width = max(2.0, (WIDTH - plane.left - RIGHT) / max(1, len(xs)))
    return join(
        tag(
            "rect",
            tag("title", f"{x_label} {x:g}: " + ", ".join(labels[x])),
            x=round(plane.x(x) - width / 2, 2),
            y=TOP,
            width=round(width, 2),
            height=HEIGHT - TOP - BOTTOM,
            class_="hover",
        )
        for x in xs
    )


def _figure(title: str, now: str, note: str, drawing: Html, legend: Html | None, label: str) -> Html:
    svg = tag("svg", drawing, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label)
    head = tag("figcaption", tag("b", title), tag("span", now, class_="now"), tag("small", note) if note else None)
    return tag("figure", head, svg, legend, class_="chart")


def _legend(series: Sequence[Series]) -> Html | None:
    if len(series) < 2:
        return None
    return tag(
        "p",
        [tag("span", tag("i", class_=f"key {s.colour}"), s.label) for s in series],
        class_="legend",
    )


def line_chart(
    title: str, series: Sequence[Series], *, shares: bool = False, note: str = "", x_label: str = "step"
) -> Html | None:
    """A line chart with axis labels, or None where there is nothing to draw.

    The pale line is each step's figure, the strong one a moving average. Shares are drawn from 0 on; other figures from
    0 too unless they vary by less than half of their size. Non-finite points are left out.
    """
    lines = [replace(s, points=[p for p in s.points if math.isfinite(p[1])]) for s in series]
    lines = [s for s in lines if s.points]
    if not lines:
        return None
    ys = [y for s in lines for _, y in s.points] + [y for s in lines for _, *ends in s.band for y in ends]
    low, high = min(ys), max(ys)
    if shares:
        low, high = min(0.0, low), min(1.0, max(high * 1.05, 0.02)) if high <= 1 else high
    elif low > 0 and low < 0.5 * high:
        low = 0.0
    y_ticks = ticks(low, high)
    plane = _Plane([x for s in lines for x, _ in s.points], y_ticks, shares)
    drawn: list[Html] = [_axes(plane, x_label)]
    for s in lines:
        if s.band:
            low_edge, high_edge = (smooth([(p[0], p[end]) for p in s.band]) for end in (1, 2))
            outline = plane.path([*low_edge, *reversed(high_edge)])
            drawn.append(tag("path", d=f"{outline}Z", class_=f"spread {s.colour}"))
        if s.dots or len(s.points) == 1:
            drawn += [tag("circle", cx=plane.x(x), cy=plane.y(y), r=3.5, class_=f"dot {s.colour}") for x, y in s.points]
            continue
        smoothed = smooth(s.points)
        if smoothed != list(s.points) and not s.band:
            drawn.append(tag("path", d=plane.path(s.points), class_=f"raw {s.colour}"))
        drawn.append(tag("path", d=plane.path(smoothed), class_=f"line {s.colour}"))
    show = percent if shares else number
    main = smooth(lines[0].points)
    start, end = main[0][1], main[-1][1]
    now = f"{show(start)} → {show(end)}" if len(main) > 1 else show(end)
    label = f"{title}: {show(start)} at {x_label} {main[0][0]:g}, {show(end)} at {x_label} {main[-1][0]:g}"
    drawn.append(_hover(plane, lines, shares, x_label))
    return _figure(title, now, note, join(drawn), _legend(lines), label)


def area_chart(title: str, series: Sequence[Series], *, note: str = "", x_label: str = "step") -> Html | None:
    """Shares that sum to 1, stacked from the bottom up. Series must have the same xs; None if there is nothing."""
    lines = [s for s in series if s.points]
    if len(lines) < 2 or len({len(s.points) for s in lines}) != 1 or len(lines[0].points) < 2:
        return None
    smoothed = [smooth(s.points) for s in lines]
    xs = [x for x, _ in smoothed[0]]
    plane = _Plane(xs, [0.0, 0.5, 1.0], True)
    base = [0.0] * len(xs)
    drawn: list[Html] = []
    for s, points in zip(lines, smoothed, strict=True):
        top = [b + y for b, (_, y) in zip(base, points, strict=True)]
        outline = [*zip(xs, top, strict=True), *zip(reversed(xs), reversed(base), strict=True)]
        drawn.append(tag("path", d=plane.path(outline) + "Z", class_=f"area {s.colour}"))
        base = top
    drawn.append(_axes(plane, x_label))
    drawn.append(_hover(plane, lines, True, x_label))
    first, last = smoothed[0][0][1], smoothed[0][-1][1]
    now = f"{lines[0].label} {percent(first)} → {percent(last)}"
    words = "; ".join(
        f"{s.label} {percent(p[0][1])} to {percent(p[-1][1])}" for s, p in zip(lines, smoothed, strict=True)
    )
    return _figure(title, now, note, join(drawn), _legend(list(reversed(lines))), f"{title}: {words}")


def sparkline(points: Sequence[Point]) -> Html:
    """A line with no axes, for a table's cell."""
    finite = [p for p in points if math.isfinite(p[1])]
    if len(finite) < 2:
        return tag("span", "–", class_="muted")
    xs, ys = [x for x, _ in finite], [y for _, y in finite]
    dx, dy = (max(xs) - min(xs)) or 1.0, (max(ys) - min(ys)) or 1.0
    path = "M" + "L".join(f"{(x - min(xs)) / dx * 118 + 1:.1f} {21 - (y - min(ys)) / dy * 18:.1f}" for x, y in finite)
    return tag(
        "svg", tag("path", d=path, class_="line after"), viewBox="0 0 120 24", class_="spark", aria_hidden="true"
    )


def strip(value: float | None, interval: Sequence[float] | None, colour: str) -> Html:
    """A share on a track from 0 to 100%: a dot, and its interval as a band."""
    marks: list[Html] = []
    if interval is not None:
        low, high = (min(1.0, max(0.0, v)) for v in interval)
        style = f"left:{low * 100:.2f}%;width:{(high - low) * 100:.2f}%"
        marks.append(tag("span", class_=f"band {colour}", style=style))
    if value is not None:
        marks.append(tag("span", class_=f"mark {colour}", style=f"left:{min(1.0, max(0.0, value)) * 100:.2f}%"))
    return tag("span", marks, class_="track", aria_hidden="true")


def dumbbell(shares: Sequence[tuple[float | None, str]]) -> Html:
    """One or two shares (share, colour) on one track, and the way from the first to the second."""
    marked = [(min(1.0, max(0.0, v)), colour) for v, colour in shares if v is not None]
    marks: list[Html] = []
    if len(marked) == 2:
        (first, _), (second, _) = marked
        style = f"left:{min(first, second) * 100:.2f}%;width:{abs(second - first) * 100:.2f}%"
        marks.append(tag("span", class_="way better" if second >= first else "way worse", style=style))
    marks += [tag("span", class_=f"mark {colour}", style=f"left:{v * 100:.2f}%") for v, colour in marked]
    return tag("span", marks, class_="track", aria_hidden="true")


def share_bar(parts: Sequence[tuple[str, float, str]]) -> Html:
    """Shares (label, share, colour) as one bar; a label stands inside where there is room."""
    return tag(
        "span",
        [
            tag(
                "span",
                tag("span", f"{label} {percent(share)}") if share > 0.18 else None,
                class_=colour,
                style=f"width:{share * 100:.2f}%",
                title=f"{label}: {percent(share)}",
            )
            for label, share, colour in parts
            if share > 0
        ],
        class_="sharebar",
    )
