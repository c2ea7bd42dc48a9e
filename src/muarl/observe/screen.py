"""The console that commands print tables on, which makes texts of others visible in whatever they stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from muarl.basics.untrusted import visible
from muarl.observe.terminal import aside


class Screen(Console):
    """A rich console in which only rich itself writes control characters. Tables measure their cells before; of texts
    that must not be cut for that, give them what ``visible`` makes."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable, in which texts are visible."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)

    def print(self, *objects: Any, **how: Any) -> None:
        """As rich prints, above a sign of work if one is shown."""
        with aside():
            super().print(*objects, **how)
