"""Pages as a browser reads them."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """Checks that tags nest, and keeps what a browser would show. ``void``: tags that nothing closes."""

    void = frozenset({"meta", "br", "hr"})

    def __init__(self, html: str | None) -> None:
        super().__init__()
        assert html is not None
        self.html = html
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((name, dict(attrs)))
        if name not in self.void:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)

    @property
    def shown(self) -> str:
        return " ".join("".join(self.text).split())
