"""The hotel desk as a generated domain."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.desk.generated import Desk
from muarl.domains.scenarios.hotel.catalogue import VOCABULARY
from muarl.domains.scenarios.hotel.tools import HotelDesk
from muarl.domains.scenarios.hotel.world import make_tables

DESK = Desk(Path(__file__).parent, HotelDesk, make_tables, VOCABULARY)
GENERATED = DESK.generated()
