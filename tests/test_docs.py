"""The documentation keeps what it promises: its code runs, its links lead somewhere, its tables are current."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "examples/*/*.md")


def pages(repository: Path) -> list[Path]:
    return sorted(page for pattern in PAGES for page in repository.glob(pattern))


@pytest.mark.parametrize("name", ["README.md", "docs/domains.md", "docs/users.md", "docs/audit.md"])
def test_the_examples_run(repository: Path, tmp_path: Path, name: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (repository / name).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    script = tmp_path / "example.py"
    script.write_text("\n\n".join(blocks))
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr


def test_json_on_pages_is_json(repository: Path) -> None:
    for page in pages(repository):
        for block in re.findall(r"^```json\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            json.loads(block)


def test_links_between_pages_lead_somewhere(repository: Path) -> None:
    for page in pages(repository):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_configuration_page_is_current(repository: Path) -> None:
    spec = importlib.util.spec_from_file_location("generate", repository / "docs" / "generate_configuration.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (repository / "docs" / "configuration.md").read_text()
    assert written == module.page(), "run: python docs/generate_configuration.py"


def test_commands_and_settings_that_pages_name_exist(repository: Path) -> None:
    from muarl.cli import app
    from muarl.config import RunConfig, fields_of

    commands = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    keys = {name for name, _, _ in fields_of(RunConfig)}
    sections = {name for name in keys if any(other.startswith(f"{name}.") for other in keys)}
    for page in pages(repository):
        text = page.read_text()
        for command in re.findall(r"(?:^ {4,}|`|bin/)muarl ([a-z]+)", text, re.MULTILINE):
            assert command in commands, f"{page.name}: muarl {command}"
        for key in re.findall(rf"[ `]((?:{'|'.join(sorted(sections))})\.[a-z_.]+)=", text):
            assert key in keys, f"{page.name}: {key}"


def test_no_path_of_a_machine_is_written_down(repository: Path) -> None:
    for page in pages(repository):
        assert not re.search(r"(?<![\w.])/(work|home|root|tmp|Users)/", page.read_text()), page.name
