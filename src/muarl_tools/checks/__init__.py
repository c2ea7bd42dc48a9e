"""Checks of environments, of tasks and of simulated users: each a list of rules, and what they share.

Whatever is found is a ``muarl.domains.checking.CheckFinding``, but for what users say, whose errors are
``muarl.user_errors``'. Actions are made again by ``gold_replay``, experts play by ``expert_plays``, and ``printing``
tells a finding.
"""
