"""The official MCP SDK, which is an optional extra: imported here and nowhere else at the top of a module."""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from muarl.basics.errors import ConfigError

REMEDY = "pip install 'muarl[mcp]'"


def available() -> bool:
    """Whether a version of the SDK that muarl works with is installed."""
    return find_spec("mcp") is not None and find_spec("mcp_types") is not None


def sdk(module: str) -> Any:
    """A module of the SDK, such as "mcp" or "mcp.server". ConfigError if the SDK is missing, or too old."""
    if not available():
        raise ConfigError(f"MCP servers need the mcp package, version 2: {REMEDY}")
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # its warnings are for whoever asks for them
    try:
        return import_module(module)
    except ImportError as problem:
        raise ConfigError(f"the mcp package that is installed does not fit ({problem}): {REMEDY}") from problem
