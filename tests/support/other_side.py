"""Other programs' own validators, in virtual environments of their own: what they need does not go with muarl's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

HARBOR = "MUARL_TEST_HARBOR_PYTHON"
"""A Python 3.12 with ``harbor`` (0.25.0) installed, with or without what it requires besides pydantic."""
TAU2 = "MUARL_TEST_TAU2_PYTHON"
"""A Python 3.12 with ``tau2`` (1.0.1), and TAU2_DATA_DIR set to its data."""
DATASETS = "MUARL_TEST_DATASETS_PYTHON"
"""A Python with Hugging Face's ``datasets``."""
OTEL = "MUARL_TEST_OTEL_PYTHON"
"""A Python with openai, httpx, opentelemetry-sdk, opentelemetry-exporter-otlp-proto-common and
opentelemetry-instrumentation-genai-openai."""


def ask(variable: str, *arguments: str | Path, env: dict[str, str] | None = None) -> str:
    """What that Python prints, given these arguments. The test is skipped where the variable names none."""
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"{variable} names no Python that has the other side's package")
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MUARL_DATA")}
    return run([python, *map(str, arguments)], {**kept, **(env or {})})


def run(words: Sequence[str], env: dict[str, str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
