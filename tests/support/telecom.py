"""A made carrier for tests, and tasks with faults of a phone or line."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.domains.tasks import Task
from muarl_worlds.tau.telecom.customers import SIZES, make_carrier
from muarl_worlds.tau.telecom.faults import FaultContext, breaking
from muarl_worlds.tau.telecom.records import telecom_database

CARRIER = make_carrier("tests 2", SIZES["tiny"])
"""Its first customer has a paid bill, one that is not due yet, and no overdue one."""
_WHO = CARRIER.tables["customers"][CARRIER.main_customers[0]]
_LINE = CARRIER.tables["lines"][_WHO["line_ids"][0]]
_LIMIT = CARRIER.tables["plans"][_LINE["plan_id"]]["data_limit_gb"]
PLACE = FaultContext(
    _WHO["full_name"], _LINE["phone_number"], _WHO["customer_id"], _LINE["line_id"], _LIMIT, CARRIER.spare_bill, 2.0
)


def broken_task(faults: Sequence[str], *, abroad: bool = False, **more: object) -> Task:
    """A task at the tests' own carrier with these faults."""
    given = {"initial_actions": tuple(breaking(faults, PLACE, abroad)), **more}
    return Task("made-up", "telecom", "", None, database=telecom_database(CARRIER.tables), **given)  # type: ignore[arg-type]
