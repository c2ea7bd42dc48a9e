"""The insurer's service desk as a generated domain."""

from __future__ import annotations

from pathlib import Path

from muarl.domains.desk.generated import Desk
from muarl.domains.scenarios.insurance.catalogue import VOCABULARY
from muarl.domains.scenarios.insurance.tools import Insurance
from muarl.domains.scenarios.insurance.world import make_tables

DESK = Desk(Path(__file__).parent, Insurance, make_tables, VOCABULARY)
GENERATED = DESK.generated()
