"""Ray: the run's rollout workers, samplers and learners as processes of one or several machines.

``runtime`` joins a cluster, checks it and reserves places; ``samplers``, ``workers`` and ``learners`` put the protocols
Sampler, Executor and Learner over processes there. ``crew`` knows who can be asked, ``calls`` waits for answers,
``models/buckets.py`` packs what is broadcast. Ray itself is imported when it is used.
"""
