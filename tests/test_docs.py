"""The documentation keeps what it promises: its code runs, its links lead somewhere, its tables are current."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from muarl import kit
from muarl.backends.pretrained import home as models_folder
from muarl.config import trust
from muarl.domains.mcp import servers
from muarl_tools.view.store import cache_folder
from muarl_worlds import data
from support.page_examples import module_of

PAGES = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md", "llms.txt",
    "docs/**/*.md", "examples/*/*.md", "skills/*/*.md",
)  # fmt: skip


def pages(repository: Path) -> list[Path]:
    return sorted(page for pattern in PAGES for page in repository.glob(pattern))


EXAMPLES = (
    "README.md",
    *(f"docs/{name}.md" for name in ("domains", "kit", "knowledge-own", "users", "audit", "tasks-check")),
)


RUN_EACH = """
import contextlib, io, os, pathlib, runpy, sys, traceback
for script in sys.argv[1:]:
    os.chdir(pathlib.Path(script).parent)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            runpy.run_path(script, run_name="__main__")
        except BaseException:
            pathlib.Path("failed").write_text(traceback.format_exc())
"""


@pytest.fixture(scope="module")
def ran(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each page whose examples ran, all of them in one process; "failed" in it says what went wrong."""
    folders = {name: tmp_path_factory.mktemp("example") for name in EXAMPLES}
    for name, folder in folders.items():
        blocks = re.findall(r"^```python\n(.*?)^```", (repository / name).read_text(), re.DOTALL | re.MULTILINE)
        assert blocks
        (folder / "example.py").write_text("\n\n".join(blocks))
    scripts = [str(folder / "example.py") for folder in folders.values()]
    subprocess.run([sys.executable, "-c", RUN_EACH, *scripts], timeout=420, check=True)
    return folders


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_run(ran: dict[str, Path], name: str) -> None:
    failed = ran[name] / "failed"
    assert not failed.exists(), failed.read_text()


def test_the_kits_page_names_all_that_authors_import(repository: Path) -> None:
    page = (repository / "docs" / "kit.md").read_text()
    told = set(re.findall(r"\w+", page))
    assert [name for name in kit.__all__ if name not in told] == []
    declared = (kit.Service, kit.Identity, kit.Fact, kit.Slot, kit.RecordDescription, kit.Intent, kit.WorldSize)
    assert [f"{one.__name__}.{f.name}" for one in declared for f in fields(one) if f.name not in told] == []
    methods = [name for one in (kit.Plan, kit.Maker) for name in vars(one) if not name.startswith("_")]
    assert [name for name in methods if name not in told] == []


def test_the_page_says_where_files_lie_outside_of_the_checkout(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (repository / "docs" / "installation.md").read_text()
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "MUARL_DATA", "MUARL_MODELS", "MUARL_MCP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    places = (data.home(), models_folder(), servers.home(), cache_folder(), trust.state_home())
    kept = ("~/.cache/muarl", "~/.local/state/muarl")
    assert all(f"`{folder}`" in page for folder in kept)
    for place in places:
        assert any(f"~/{place.relative_to(tmp_path)}".startswith(f"{folder}/") for folder in kept), place
    for name in ("MUARL_DATA", "MUARL_MODELS", "MUARL_MCP_SERVERS"):
        monkeypatch.setenv(name, str(tmp_path / name))
        assert f"`{name}`" in page
        assert any(place.is_relative_to(tmp_path / name) for place in (data.home(), models_folder(), servers.home()))


def test_json_on_pages_is_json(repository: Path) -> None:
    for page in pages(repository):
        for block in re.findall(r"^```json\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            json.loads(block)


def test_links_between_pages_lead_somewhere(repository: Path) -> None:
    for page in pages(repository):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_links_to_sections_name_a_heading(repository: Path) -> None:
    for page in pages(repository):
        for target, section in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            linked = (page.parent / target).read_text() if target else page.read_text()
            headings = {anchor(h) for h in re.findall(r"^#+ (.*)$", linked, re.MULTILINE)}
            assert section in headings, f"{page.name}: {target}#{section}"


def anchor(heading: str) -> str:
    """The name by which GitHub links to a heading."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def test_the_files_that_the_architecture_page_names_exist(repository: Path) -> None:
    source = repository / "src"
    files = ["/" + path.relative_to(source).as_posix() for path in source.rglob("*.py")]
    page = (repository / "docs" / "architecture.md").read_text()
    named = {n.lstrip("/") for n in re.findall(r"[\w/]+\.py\b", page)}
    named = {n for n in named if not (n.startswith(("docs/", "tests/", "examples/")) and (repository / n).is_file())}
    assert len(named) > 40
    assert [n for n in sorted(named) if not any(f.endswith("/" + n) for f in files)] == []
    folders = {f.rsplit("/", 1)[0] + "/" for f in files} | {"/presets/", "/assets/"}
    named = set(re.findall(r"`([a-z][\w/]*/)`", page))
    assert [n for n in sorted(named) if not any(f.endswith("/" + n) for f in folders)] == []


def test_the_list_of_packages_is_current(repository: Path) -> None:
    module = module_of(repository / "docs" / "generate_architecture.py")
    written = (repository / "docs" / "architecture.md").read_text()
    assert written == module.page(), "run: python docs/generate_architecture.py"


def test_the_configuration_page_is_current(repository: Path) -> None:
    module = module_of(repository / "docs" / "generate_configuration.py")
    written = (repository / "docs" / "configuration.md").read_text()
    assert written == module.page(), "run: python docs/generate_configuration.py"


def test_the_list_for_language_models_is_current(repository: Path) -> None:
    module = module_of(repository / "docs" / "generate_llms.py")
    written = (repository / "llms.txt").read_text(encoding="utf-8")
    assert written == module.page(), "run: python docs/generate_llms.py"
    for page in (*repository.glob("docs/**/*.md"), *repository.glob("skills/*/SKILL.md")):
        assert f"]({page.relative_to(repository).as_posix()}): " in written


@pytest.mark.parametrize(
    ("text", "title", "sentence"),
    [
        ("# A `b`\n\n- One.\n\nIt is\n[so](x.md). It goes on.", "A b", "It is so."),
        ("# A\n\n| x |\n|---|\n| y |\n\nBelow the table: Yes.", "A", "Below the table"),
        ("# A\n\n    muarl compare x y\n\nsays which is better.", "A", "`muarl compare` says which is better."),
        (f"# A\n\n{'word ' * 100}.", "A", "word " * 63 + "word ..."),
    ],
)
def test_a_page_is_summed_up_by_its_first_sentence(repository: Path, text: str, title: str, sentence: str) -> None:
    module = module_of(repository / "docs" / "generate_llms.py")
    assert module.title_and_sentence(text) == (title, sentence)


def test_a_page_without_a_paragraph_cannot_be_summed_up(repository: Path) -> None:
    module = module_of(repository / "docs" / "generate_llms.py")
    with pytest.raises(ValueError, match="a heading and a paragraph"):
        module.title_and_sentence("# A\n\n- one")


def test_commands_and_settings_that_pages_name_exist(repository: Path) -> None:
    from muarl.cli.main import subcommands
    from muarl.config.sections import RunConfig, fields_of

    commands = set(subcommands())
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
