"""Whether tasks are right: what is wrong with a benchmark's, a generator's or a log's tasks, by rule (``muarl tasks
check``; docs/tasks-check.md).

``open_source`` finds the tasks, ``check_source`` looks at them, ``fixing`` writes the fixed ones.
"""

from muarl.environments.task_checks.findings import LEVELS, OVERALL, RULES, Fix, OverallFinding, TaskFinding
from muarl.environments.task_checks.run import TaskReport, check_source, check_task
from muarl.environments.task_checks.sources import TaskSource, open_source

__all__ = [
    "LEVELS", "OVERALL", "RULES", "Fix", "OverallFinding", "TaskFinding", "TaskReport", "TaskSource", "check_source",
    "check_task", "open_source",
]  # fmt: skip
