"""What is imported with what (benches/structure.py)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

TRAINING = """
import sys
from muarl.config.load import load_config
from muarl.environments.configure import places_of
places_of(load_config("quickstart"))
print(*sorted(name for name in sys.modules if name.startswith("muarl_")))
"""


@pytest.fixture(scope="module")
def trained(repository: Path) -> set[str]:
    """The modules that a training imports before it has read a configuration."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(repository / "benches"))
        import structure

        return structure.read(repository).closure(["muarl.recipes.rl"])


def test_training_in_the_shop_imports_no_line_of_another_world(trained: set[str]) -> None:
    assert [name for name in sorted(trained) if not name.startswith("muarl.") and name != "muarl"] == []
    done = subprocess.run([sys.executable, "-c", TRAINING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules = [name.split(".") for name in done.stdout.split()]
    assert {name[0] for name in modules} == {"muarl_worlds"}
    worlds = {".".join(name[1:3]) for name in modules if len(name) > 1}
    assert worlds <= {"environments", "environments.retail", "tau", "tau.retail", "tau.calculator", "tau.people"}, (
        worlds
    )


def test_a_training_imports_only_what_was_chosen(trained: set[str]) -> None:
    """A search, a plan, a cluster, another chat format: each is imported where a configuration asks for it."""
    chosen = (
        "muarl.retrieval", "muarl.domains.sql", "muarl.audit.judge", "muarl.planning.plan", "muarl.planning.models",
        "muarl.backends.cluster", "muarl.backends.local", "muarl.backends.vllm", "muarl.inference.vllm",
        "muarl.workers", "muarl.models.generic", "muarl.chat_formats.choice",
        "muarl.runs.checks",
    )  # fmt: skip
    assert [name for name in sorted(trained) if name.startswith(chosen)] == []


def test_the_whole_configuration_ends_at_recipes() -> None:
    """What lies below gets sections: who takes a RunConfig there makes such a part of it, or is about all of it."""
    below: dict[str, set[str]] = {}
    source = Path(__file__).parents[1] / "src" / "muarl"
    for file in source.rglob("*.py"):
        folder, where = file.relative_to(source).parts[0], str(file.relative_to(source))
        if folder in ("recipes", "cli", "config"):
            continue
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "RunConfig" in text else ():
            if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
                if ast.unparse(node.annotation) in ("RunConfig", "'RunConfig'"):
                    below.setdefault(folder, set()).add(where)
    assert below.keys() <= {"runs", "backends", "environments"}
    assert below["backends"] == {
        f"backends/{name}.py" for name in ("process_config", "engines", "model_notes", "number_formats", "plans")
    }
    whole = ("checks", "config_changes", "context", "eval_agent", "prices", "roles", "room", "user_checks")
    assert below["runs"] == {f"runs/{name}.py" for name in whole}


def test_every_name_is_imported_from_the_module_that_defines_it(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(repository / "benches"))
    import structure

    assert structure.borrowed_names(repository) == []


def test_the_bodies_of_commands_are_short() -> None:
    """Of no function of the command line beyond 60 lines, its docstring counted and its parameters not."""
    source = Path(__file__).parents[1] / "src"
    long = []
    for file in [*(source / "muarl" / "cli").glob("*.py"), *(source / "muarl_tools" / "commands").glob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if (node.end_lineno or 0) - node.body[0].lineno >= 60:
                    long.append(f"{file.name}:{node.name}")
    assert long == []


def test_no_bench_imports_one_that_imports_it(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports within functions and for types count, too."""
    monkeypatch.syspath_prepend(str(repository / "benches"))
    import structure

    texts = {file.stem: file.read_text(encoding="utf-8") for file in (repository / "benches").glob("*.py")}
    imports = {
        name: {one.name.split(".")[0] for one in structure.imports_of(text, "")} & texts.keys()
        for name, text in texts.items()
    }
    assert "referee_results" in imports["referee_page"]
    assert structure.circles(imports) == []
