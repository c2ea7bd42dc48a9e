"""Upstream's own files: what its inference writes (data_agent_CATEGORY_result.json) and what its evaluation writes
beside the scores (data_agent_CATEGORY_process.json), both with an object on each line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.records.rows import field, json_lines
from muarl_worlds.acebench.execute import Category
from muarl_worlds.acebench.official.rows import score_row, scores
from muarl_worlds.acebench.official.tasks import CATEGORIES, DOMAINS, language_of, task, tasks
from muarl_worlds.acebench.official.verdicts import figures
from muarl_worlds.acebench.scenario import Language


@dataclass(frozen=True)
class AceBenchResults:
    """The scores of result files. ``rows``: as ``score_row`` has them, in upstream's order. ``figures``: upstream's
    headline figures, without a category that no file has. ``missing``: the tasks of those categories that no line is
    about; upstream scores complete files only."""

    rows: tuple[dict[str, Any], ...]
    figures: Mapping[str, float]
    missing: tuple[str, ...]


def is_result_file(path: Path) -> bool:
    """Whether a file's name is one of upstream's result files'."""
    return path.name in {f"data_agent_{category}_result.json" for category in CATEGORIES}


def read_results(paths: Sequence[Path], *, language: str | None = None) -> AceBenchResults:
    """The scores of result files, and of all that stand in folders among ``paths``.

    ``language``: None to take it from a folder's name, such as result_en. DataError names file and line.
    """
    files = [f for path in paths for f in (sorted(path.rglob("data_agent_*_result.json")) if path.is_dir() else [path])]
    if not files:
        raise DataError(f"{', '.join(map(str, paths))}: there is no data_agent_multi_turn_result.json or the like")
    found: dict[tuple[Language, str], dict[str, Any]] = {}
    pairs: dict[tuple[Language, str], tuple[float, float]] = {}
    for file in files:
        spoken = _language(file, language)
        for place, row in ((row.place, row.value) for row in json_lines(file)):
            line = score_row(row, place, language=spoken)
            key = (language_of(line["language"]), line["id"])
            if key in found:
                raise DataError(f"{place}: task {line['id']!r} has a line already")
            official, _ = scores(task(*key), row.get("final_state", row.get("result", [])), row.get("process", []))
            found[key], pairs[key] = line, (float(official.valid), official.process)
    languages = {name for name, _ in found}
    if len(languages) > 1:
        raise DataError("the files are of both languages: score one at a time, or name one with --language")
    if not found:
        raise DataError(f"{', '.join(map(str, files))}: there are no results in it")
    spoken = next(iter(languages))
    ordered = [t for t in tasks(spoken) if (spoken, t.id) in found]
    by_category: dict[str, list[tuple[float, float]]] = {}
    for t in ordered:
        by_category.setdefault(t.tags["category"], []).append(pairs[spoken, t.id])
    missing = [t.id for t in tasks(spoken) if t.tags["category"] in by_category and (spoken, t.id) not in found]
    return AceBenchResults(tuple(found[spoken, t.id] for t in ordered), figures(by_category), tuple(missing))


def read_process_file(path: Path, category: Category) -> dict[str, float]:
    """What upstream's evaluation noted of process accuracy: task id to a share below 1, the others being right.

    Of a task with alternatives it notes the last one's, not the best's. DataError names file and line.
    """
    out: dict[str, float] = {}
    for row in json_lines(path):
        for name, note in row.value.items():
            share = field(note, "process_accuracy", float, "a number", f"{row.place}, {name}")
            out[f"agent_{category}_{name.rsplit('_', 1)[-1]}"] = share
    return out


def _language(file: Path, given: str | None) -> Language:
    if given is not None:
        return language_of(given)
    for part in reversed(file.parts):
        for known in DOMAINS:
            if part.endswith(f"_{known}"):
                return known
    raise DataError(f"{file}: nothing in its path tells the language, such as a folder result_en; name it")
