"""BFCL, by the benchmark's own protocol."""

from __future__ import annotations

from functools import partial

from muarl.domains.auditing import NO_CONSENT
from muarl.environments.environment import Environment
from muarl_worlds.bfcl.protocol import bfcl

_of = partial(Environment, audit=NO_CONSENT, practice="bfcl-generated")

V3 = _of(name="bfcl-v3", protocol=bfcl("v3"), about="BFCL version 3, entries of several turns.")
V4 = _of(name="bfcl-v4", protocol=bfcl("v4"), about="BFCL version 4, entries of several turns.")
