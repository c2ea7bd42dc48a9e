"""muarl's optional parts, the extras of ``pip install 'muarl[...]'``, and what is said where one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from muarl.basics.errors import ConfigError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "train": ("torch", "transformers", "tokenizers", "safetensors", "renderers", "tensorboard"),
    "lora": ("peft",),
    "ray": ("ray",),
    "vllm": ("vllm",),
    "mcp": ("mcp", "mcp_types"),
    "wandb": ("wandb",),
    "trackio": ("trackio",),
    "parquet": ("pyarrow",),
    "sql": ("sqlalchemy",),
    "trl": ("trl",),
    "openenv": ("openenv",),
    "verifiers": ("verifiers",),
    "inspect": ("inspect_ai",),
    "verl": ("verl",),
    "skyrl": ("skyrl_gym",),
    "tinker": ("tinker_cookbook",),
}
"""Each extra with the packages that muarl imports of it. Without any, muarl is its light core: domains, users,
conversations, endpoints, scoring and audits."""

LOGGERS = ("tensorboard",)
"""Packages of extras that muarl uses where they are, and does without where they are not."""


class MissingExtra(ConfigError, ImportError):
    """A package that belongs to one of muarl's extras is needed and not installed. Its text names the remedy."""


def is_installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # ValueError: sys.modules has an entry that no import made
        return False


def require(extra: str, what: str) -> None:
    """MissingExtra unless the packages of this extra are installed. ``what`` needs them: a command, or a setting."""
    for package in EXTRAS[extra]:
        if package not in LOGGERS and not is_installed(package):
            raise _missing(package, extra, what)


def missing_extra(problem: Exception, what: str) -> MissingExtra | None:
    """What an exception means if it is the failed import of a package of an extra that is not installed; else None."""
    package = str((isinstance(problem, ImportError) and problem.name) or "").partition(".")[0]
    extra = next((extra for extra, packages in EXTRAS.items() if package in packages), None)
    return None if extra is None or is_installed(package) else _missing(package, extra, what)


def _missing(package: str, extra: str, what: str) -> MissingExtra:
    return MissingExtra(f"{what} needs {package}, which is not installed: pip install 'muarl[{extra}]'", name=package)
