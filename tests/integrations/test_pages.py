"""The examples on the pages of docs/integrations run, where their packages are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.chat_server import TOKEN, serving
from support.page_examples import example_of

PAGES = {"trl.md": ("trl", "datasets"), "openenv.md": ("openenv",)}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_run(repository: Path, tmp_path: Path, page: str) -> None:
    for package in PAGES[page]:
        pytest.importorskip(package, reason=f"{package} is not installed")
    text = (repository / "docs" / "integrations" / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert blocks
    for number, block in enumerate(blocks):
        script = tmp_path / f"example-{number}.py"
        script.write_text(block)
        run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert run.returncode == 0, run.stderr


async def test_a_conversation_is_played_with_muarl_serve_and_its_token(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="muarl[train] is not installed")
    from muarl.basics.errors import InfrastructureError
    from muarl.inference.torch_engine import TorchEngine
    from muarl.learning.checkpoints import load_policy

    text = (repository / "docs" / "integrations.md").read_text()
    blocks = re.findall(r"^```python\n.*?^```", text, re.DOTALL | re.MULTILINE)
    (block,) = [block for block in blocks if "def rollout" in block]
    page = tmp_path / "page.md"
    page.write_text(block.replace("\n", "\nimport muarl\n", 1))
    example = example_of(page, tmp_path)
    policy = load_policy(repository / "src/muarl/assets/base")
    with serving(TorchEngine(policy.model, max_slots=2, max_context=2048), policy.tokenizer) as server:
        asked = ("retail-generated:test:0", server.address, "m", 1)
        assert await example.rollout(*asked, TOKEN) in (0.0, 1.0)
        with pytest.raises(InfrastructureError, match="401"):
            await example.rollout(*asked)
