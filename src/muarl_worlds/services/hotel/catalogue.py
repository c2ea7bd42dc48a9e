"""What the hotel group of the scenario consists of: houses by city, and sorts of rooms."""

from __future__ import annotations

HOTELS: dict[str, tuple[str, ...]] = {
    "Lisbon": ("Harbour House", "Tram Garden Hotel", "The Tiled Lantern"),
    "Vienna": ("Ringstrasse Palais", "Hotel Linden", "The Music Room"),
    "Oslo": ("Fjordlight Inn", "Birch and Stone", "Hotel Nordstjerne"),
    "Dublin": ("Liffey Lodge", "The Green Door", "Canal Bank Hotel"),
    "Prague": ("Old Bridge Hotel", "Golden Lane House", "Hotel Vltava"),
    "Turin": ("Arcade Suites", "Hotel Mole", "The Chocolate Court"),
}
NAMES = tuple(name for names in HOTELS.values() for name in names)
ROOMS = {"standard": 2, "deluxe": 2, "family": 4, "suite": 3}
"""Sorts of rooms, and how many people each sleeps."""
VOCABULARY = {"hotels": NAMES, "cities": tuple(HOTELS)}
