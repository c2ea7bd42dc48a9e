"""The food delivery desk as a generated domain."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.desk.generated import Desk
from muarl.domains.scenarios.food_delivery.catalogue import VOCABULARY
from muarl.domains.scenarios.food_delivery.tools import FoodDelivery
from muarl.domains.scenarios.food_delivery.world import make_tables

DESK = Desk(Path(__file__).parent, FoodDelivery, make_tables, VOCABULARY)
GENERATED = DESK.generated()
