"""Run configurations: what a YAML preset may say, what it means, and clear words for what it must not say.

``load_config("cpu", ["rl.steps=10"])`` reads a preset or a file, lays dotted overrides over it, checks every key and
returns a frozen ``RunConfig``. A file may start from another with ``extends: cpu``.
"""

from muarl.config.load import dump_config, load_config
from muarl.config.presets import PRESETS, Preset, all_presets, preset_names
from muarl.config.sections import (
    BaseConfig,
    DomainConfig,
    EndpointConfig,
    ErrorProfileConfig,
    EvalConfig,
    ModelConfig,
    RlConfig,
    RolloutConfig,
    RunConfig,
    Section,
    SftConfig,
    UserConfig,
    fields_of,
)

__all__ = [
    "PRESETS",
    "load_config",
    "dump_config",
    "Preset",
    "preset_names",
    "all_presets",
    "RunConfig",
    "ModelConfig",
    "DomainConfig",
    "UserConfig",
    "EndpointConfig",
    "BaseConfig",
    "SftConfig",
    "ErrorProfileConfig",
    "RlConfig",
    "RolloutConfig",
    "EvalConfig",
    "Section",
    "fields_of",
]
