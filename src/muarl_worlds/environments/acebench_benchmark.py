"""ACEBench, by the benchmark's own protocol."""

from __future__ import annotations

from functools import partial

from muarl.domains.auditing import NO_CONSENT
from muarl.environments.environment import Environment
from muarl_worlds.acebench.protocol import acebench

_of = partial(Environment, audit=NO_CONSENT, practice="acebench-generated")

ENGLISH = _of(name="acebench-en", protocol=acebench("en"), about="ACEBench: agent tasks in English.")
CHINESE = _of(name="acebench-zh", protocol=acebench("zh"), about="ACEBench: agent tasks in Chinese.")
