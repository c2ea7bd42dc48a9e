"""Whether tasks are right: what is wrong with a benchmark's, a generator's or a log's tasks, by rule (``muarl tasks
check``; docs/tasks-check.md).

``open_source`` finds the tasks, ``check_source`` looks at them, ``fixing`` writes the fixed ones.
"""
