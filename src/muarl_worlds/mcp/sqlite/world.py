"""What tasks at the library begin with: books, members and loans from chance. Titles and full names differ by split."""

from __future__ import annotations

from typing import Any

from muarl.domains.kit.people import Maker, shift

TODAY = "2026-03-16"
ADJECTIVES = (
    "Silent", "Golden", "Broken", "Distant", "Crimson", "Hidden", "Frozen", "Restless", "Gentle", "Burning", "Hollow",
    "Northern", "Secret", "Paper", "Winter", "Velvet",
)  # fmt: skip
NOUNS = (
    "Harbour", "Garden", "Letter", "Mountain", "River", "Lantern", "Orchard", "Mirror", "Compass", "Island", "Bridge",
    "Forest", "Window", "Station", "Feather", "Market",
)  # fmt: skip
CITIES = ("Boston", "Denver", "Austin", "Seattle", "Chicago", "Phoenix", "Portland", "Miami", "Atlanta", "Detroit")
SHELVES = tuple(f"{letter}{n}" for letter in "ABCDEF" for n in range(1, 7))
DAYS = tuple(shift(TODAY, days) for days in range(16, 44))
"""Until when books are lent."""
MOST_LOANS = 3
FRESH = 4
"""How many names there are that no member has."""


def make_tables(make: Maker) -> dict[str, dict[str, Any]]:
    """Books, members, and loans that keep to the rules; some are overdue."""
    rng, tiny = make.rng, make.tiny
    titles = make.some("title", lambda: f"The {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}", 5 if tiny else 14)
    books = {
        str(n): {
            "id": n, "title": title, "author": make.name(), "shelf": rng.choice(SHELVES),
            "copies": rng.randint(1, 2 if tiny else 3),
        }
        for n, title in enumerate(titles, 1)
    }  # fmt: skip
    members = {str(n): {"id": n, "name": make.name(), "city": rng.choice(CITIES)} for n in range(1, 7 if tiny else 15)}
    loans: dict[str, Any] = {}
    for member in members.values():
        for book in rng.sample(list(books.values()), min(len(books), rng.choice((0, 0, 1, 1, 2, MOST_LOANS)))):
            if sum(loan["book_id"] == book["id"] for loan in loans.values()) < book["copies"]:
                n = len(loans) + 1
                due = shift(TODAY, rng.randint(-15, -1) if rng.random() < 0.15 else rng.randint(1, 12))
                loans[str(n)] = {"id": n, "book_id": book["id"], "member_id": member["id"], "due": due}
    strangers = {name: {"name": name} for name in (make.name() for _ in range(FRESH))}
    return {"books": books, "members": members, "loans": loans, "strangers": strangers}
