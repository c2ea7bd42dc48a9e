"""BFCL's data as they come: out of its wheels, unpacked or not, out of a checkout, or as they are installed.

Nothing is unpacked or imported. Files are read by their names, and of the one Python source that holds data
(long_context.py) the syntax tree's literals.
"""

from __future__ import annotations

import ast
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError

_CHECKOUT = "berkeley-function-call-leaderboard"
_PACKAGE = "bfcl_eval"
_LITERALS = "long_context.json"
_LITERALS_SOURCE = f"{_PACKAGE}/eval_checker/multi_turn_eval/func_source_code/long_context.py"
_LARGEST = 20_000_000
_LICENSE = "LICENSE"

Read = Callable[[str], bytes | None]
"""A file's content by its path within the package's folder; None if there is none."""


def collect(source: Path, files: Mapping[str, list[str]]) -> dict[str, tuple[bytes, str]]:
    """What of the data is in a wheel, a folder of wheels, an unpacked wheel, a checkout or an installed folder.

    ``files``: each revision's files, as they are installed. The answer is file to its content and where it comes from;
    a revision is there with all of its files or not at all. DataError if one is incomplete, or if there is none.
    """
    if not source.exists():
        raise DataError(f"--from {source}: no such file or folder")
    found: dict[str, tuple[bytes, str]] = {}
    for read, shown in _packages(source):
        for revision, names in files.items():
            if revision in {name.partition("/")[0] for name in found}:
                continue
            if read(_inside(names[0])) is not None:
                found |= _revision(read, shown, names)
    for names in files.values():
        if (source / names[0]).is_file() and not any(name in found for name in names):
            found |= _installed(source, names)
    if not found:
        raise DataError(
            f"--from {source}: it holds none of BFCL's data; give a wheel of bfcl-eval, a folder with wheels or an "
            f"unpacked one, or a checkout of gorilla"
        )
    licence = next((f for f in (source / _LICENSE, source.parent / _LICENSE) if f.is_file()), None)
    if licence is not None:
        found[_LICENSE] = (licence.read_bytes(), str(licence))
    return found


def _packages(source: Path) -> Iterator[tuple[Read, str]]:
    """Readers of all the packages that a source holds."""
    if source.is_file():
        yield _wheel(source), str(source)
        return
    for wheel in sorted(source.glob("*.whl")):
        yield _wheel(wheel), str(wheel)
    for folder in (source, source / _CHECKOUT, *sorted(p for p in source.iterdir() if p.is_dir())):
        if (folder / _PACKAGE).is_dir():
            yield _folder(folder), str(folder)
    if source.name == _PACKAGE:
        yield _folder(source.parent), str(source.parent)


def _wheel(file: Path) -> Read:
    try:
        with zipfile.ZipFile(file) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
    except (OSError, zipfile.BadZipFile) as problem:
        raise DataError(f"--from {file}: it cannot be read as a wheel: {problem}") from None

    def read(name: str) -> bytes | None:
        if name not in sizes:
            return None
        if sizes[name] > _LARGEST:
            raise DataError(f"{file}: {name} is too large ({sizes[name]} bytes)")
        try:
            with zipfile.ZipFile(file) as archive:
                return archive.read(name)
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as problem:
            raise DataError(f"{file}: {name} cannot be read: {problem}") from None

    return read


def _folder(root: Path) -> Read:
    def read(name: str) -> bytes | None:
        file = root / name
        return file.read_bytes() if file.is_file() else None

    return read


def _inside(file: str) -> str:
    """Where a file of an installed revision stands in the package."""
    name = file.partition("/")[2]
    return _LITERALS_SOURCE if name == _LITERALS else f"{_PACKAGE}/data/{name}"


def _revision(read: Read, shown: str, names: list[str]) -> dict[str, tuple[bytes, str]]:
    found = {}
    for name in names:
        place = f"{shown}: {_inside(name)}"
        content = read(_inside(name))
        if content is None:
            raise DataError(f"{place} is missing")
        found[name] = (literals_json(content, place) if name.endswith(f"/{_LITERALS}") else content, place)
    return found


def _installed(root: Path, names: list[str]) -> dict[str, tuple[bytes, str]]:
    for name in names:
        if not (root / name).is_file():
            raise DataError(f"{root / name} is missing")
    return {name: ((root / name).read_bytes(), str(root / name)) for name in names}


def literals_json(source: bytes, place: str) -> bytes:
    """The literals that a Python source assigns to names, as a JSON object. DataError with ``place`` if one is no
    literal. An Ellipsis becomes ``{"__ellipsis__": true}``."""
    found: dict[str, Any] = {}
    try:
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = _as_json(ast.literal_eval(node.value))
        return json.dumps(found, indent=0, ensure_ascii=False).encode()
    except SyntaxError as problem:
        raise DataError(f"{place} is not Python: {problem.msg} (line {problem.lineno})") from None
    except (ValueError, TypeError, RecursionError, MemoryError) as problem:
        raise DataError(f"{place} holds something else than literals: {problem}") from None


def _as_json(value: Any) -> Any:
    if value is ...:
        return {"__ellipsis__": True}
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    return value
