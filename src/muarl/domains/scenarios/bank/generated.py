"""The bank's telephone desk as a generated domain."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.desk.generated import Desk
from muarl.domains.scenarios.bank.catalogue import VOCABULARY
from muarl.domains.scenarios.bank.tools import Bank
from muarl.domains.scenarios.bank.world import make_tables

DESK = Desk(Path(__file__).parent, Bank, make_tables, VOCABULARY)
GENERATED = DESK.generated()
