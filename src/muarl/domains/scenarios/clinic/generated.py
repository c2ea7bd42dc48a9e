"""The clinic's front desk as a generated domain."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.desk.generated import Desk
from muarl.domains.scenarios.clinic.catalogue import VOCABULARY
from muarl.domains.scenarios.clinic.tools import Clinic
from muarl.domains.scenarios.clinic.world import make_tables

DESK = Desk(Path(__file__).parent, Clinic, make_tables, VOCABULARY)
GENERATED = DESK.generated()
