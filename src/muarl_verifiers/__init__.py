"""muarl for verifiers and prime-rl: ``vf-eval muarl-verifiers``. verifiers finds environments by the name of a module
that is not inside another package, hence this one. See muarl_integrations.verifiers."""

from muarl_integrations.verifiers import MuarlEnv, MuarlHarness, MuarlTaskset

__all__ = ["MuarlEnv", "MuarlHarness", "MuarlTaskset"]
