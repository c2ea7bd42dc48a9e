"""Whether tasks are right: what is wrong with a benchmark's, a generator's or a log's tasks, by rule (``muarl tasks
check``; docs/tasks-check.md).

``open_source`` finds the tasks, ``check_source`` looks at them, ``fixing`` writes the fixed ones.
"""

from muarl_tools.check_tasks.findings import LEVELS, OVERALL, RULES, Fix, OverallFinding, TaskFinding
from muarl_tools.check_tasks.run import TaskReport, check_source, check_task
from muarl_tools.check_tasks.sources import TaskSource, open_source

__all__ = [
    "LEVELS", "OVERALL", "RULES", "Fix", "OverallFinding", "TaskFinding", "TaskReport", "TaskSource", "check_source",
    "check_task", "open_source",
]  # fmt: skip
