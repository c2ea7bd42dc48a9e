"""``muarl tasks check``: what is wrong with a benchmark's, a generator's or a log's tasks (docs/tasks-check.md).

``sources`` finds the tasks, ``rules`` lists what is looked for, ``report`` looks, ``fixes`` writes the fixed ones.
"""
