"""What is said where the package of an adapter is not installed."""

from __future__ import annotations

import importlib
import sys

import pytest

from muarl.basics.extras import MissingExtra

ADAPTERS = {
    "inspect_ai": ("inspect_ai", r"pip install 'muarl\[inspect\]'"),
    "openenv": ("openenv", r"pip install 'muarl\[openenv\]'"),
    "openenv_sessions": ("openenv", r"pip install 'muarl\[openenv\]'"),
    "rllm": ("rllm", "its repository, rllm-org/rllm, says how"),
    "skyrl_gym": ("skyrl_gym", r"pip install 'muarl\[skyrl\]'"),
    "slime": ("slime", "its repository, THUDM/slime, says how"),
    "tinker_cookbook": ("tinker_cookbook", r"pip install 'muarl\[tinker\]'"),
    "trl": ("trl", r"pip install 'muarl\[trl\]'"),
    "trl_rollouts": ("trl", r"pip install 'muarl\[trl\]'"),
    "verifiers": ("verifiers", r"pip install 'muarl\[verifiers\]'"),
    "verl": ("verl", r"pip install 'muarl\[verl\]'"),
}


@pytest.mark.parametrize("module", ADAPTERS)
def test_an_adapter_names_what_it_lacks(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, remedy = ADAPTERS[module]
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"muarl_integrations.{module}", raising=False)
    with pytest.raises(MissingExtra, match=f"needs {package}, which is not installed: {remedy}"):
        importlib.import_module(f"muarl_integrations.{module}")
