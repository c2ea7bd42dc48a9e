"""What must hold of every environment, as checks that say what is wrong, where, and what to do about it.

``run_checks`` in ``every`` runs them all. ``muarl domains check NAME`` prints what they find, and the tests run them on
every environment that comes with muarl.
"""

from muarl_tools.check_environment.context import CheckContext
from muarl_tools.check_environment.every import CheckOutcome, all_checks, run_checks

__all__ = ["CheckContext", "CheckOutcome", "all_checks", "run_checks"]
