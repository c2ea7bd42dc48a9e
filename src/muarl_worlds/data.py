"""Where benchmark data lie on this machine, and what they must be: each file by its sha256.

The package ships no benchmark data, only a manifest per benchmark (repository, commit, and the size and sha256 of each
file). ``path`` gives the installed folder, checked; ``benchmarks.install`` brings the data there.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from muarl.basics.errors import DataError
from muarl.basics.folders import home

RAW = "https://raw.githubusercontent.com"
_MANIFESTS = Path(__file__).parent / "manifests"
LICENSE = "LICENSE"
TASK_SETS = ("areal-tau2",)
"""Tasks of others to train on, which have no manifest: what reads them checks them (``tau.areal_tau2``)."""
_verified: dict[Path, int] = {}


@dataclass(frozen=True)
class Manifest:
    """What a benchmark's data consists of. ``files``: path within the folder -> (sha256, bytes).

    ``sources``: for files that the repository keeps as Python source, path -> (source's path, sha256, bytes).
    ``wheels``: for data that come in wheels, each top folder of the data -> (requirement, sha256); any of those folders
    may be absent as a whole. ``licence``: the name of the licence's file in the repository; installed as LICENSE.
    """

    name: str
    repository: str
    commit: str
    folder: str
    files: dict[str, tuple[str, int]]
    sources: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    wheels: dict[str, tuple[str, str]] = field(default_factory=dict)
    licence: str = LICENSE

    def groups(self) -> dict[str, list[str]]:
        """Files that belong together: each domain's own, each wheel's own, and the rest."""
        found: dict[str, list[str]] = {}
        for file in self.files:
            parts = file.split("/")
            alone = len(parts) > 2 and not self.wheels
            found.setdefault("/".join(parts[:2]) if alone else parts[0], []).append(file)
        return found

    def optional(self, group: str) -> bool:
        """Whether the files of a group may be absent, all of them."""
        return group.startswith("domains/") or group in self.wheels

    def url(self, file: str) -> str:
        """Where a file, or the source it is made from, can be downloaded at the pinned commit."""
        if file in self.sources:
            file = self.sources[file][0]
        inside = self.licence if file == LICENSE else f"{self.folder}/{file}"
        return f"{RAW}/{self.repository}/{self.commit}/{inside}"


def known() -> tuple[str, ...]:
    """The benchmarks whose data this version can install."""
    return tuple(sorted(p.stem for p in _MANIFESTS.glob("*.json")))


@cache
def manifest(name: str) -> Manifest:
    """The pinned manifest of a benchmark. DataError if there is none of that name."""
    file = _MANIFESTS / f"{name}.json"
    if name not in known():
        raise DataError(f"there is no benchmark {name!r}; known: {', '.join(known())}. Tasks: {', '.join(TASK_SETS)}")
    raw = json.loads(file.read_text(encoding="utf-8"))
    files = {k: (v["sha256"], v["bytes"]) for k, v in raw["files"].items()}
    made = {k: v["source"] for k, v in raw["files"].items() if "source" in v}
    sources = {k: (v["file"], v["sha256"], v["bytes"]) for k, v in made.items()}
    wheels = {k: (v["requirement"], v["sha256"]) for k, v in raw.get("wheels", {}).items()}
    licence = raw.get("license_file", LICENSE)
    return Manifest(raw["name"], raw["repository"], raw["commit"], raw["folder"], files, sources, wheels, licence)


def installed() -> tuple[str, ...]:
    """The names of the benchmarks whose data are installed."""
    return tuple(n for n in known() if (home() / n).is_dir())


def path(name: str) -> Path:
    """The installed folder of a benchmark, its files verified once per process. DataError if missing or changed."""
    wanted = manifest(name)
    folder = home() / name
    if not folder.is_dir():
        raise DataError(
            f"the data of {name} are not installed in {home()}: "
            f"run `muarl data add {name} --from DIR` or `muarl data fetch {name}`"
        )
    stamp = max((f.stat().st_mtime_ns for f in [folder, *folder.rglob("*")]), default=0)
    if _verified.get(folder) != stamp:
        for file in present(wanted, folder, remedy=f"run `muarl data add {name} --from DIR` again"):
            check(folder / file, *wanted.files[file], remedy=f"run `muarl data add {name} --from DIR` again")
        _verified[folder] = stamp
    return folder


def forget(folder: Path) -> None:
    """Verify an installed folder anew when it is asked for next."""
    _verified.pop(folder, None)


def read_text(name: str, file: str) -> str:
    """The text of one installed file. DataError if the benchmark or this part of it is not installed."""
    target = path(name) / file
    try:
        return target.read_text(encoding="utf-8")
    except OSError as problem:
        raise DataError(
            f"{target}: {problem.strerror}. Run `muarl data fetch {name}` to install all of {name}"
        ) from None


def read_json(name: str, file: str) -> Any:
    """One installed JSON file, parsed."""
    try:
        return json.loads(read_text(name, file))
    except ValueError as problem:
        raise DataError(f"{path(name) / file} is not JSON: {problem}") from None


def read_json_lines(name: str, file: str) -> list[Any]:
    """One installed file with a JSON value on each line, parsed."""
    lines = [line for line in read_text(name, file).split("\n") if line.strip()]
    try:
        return [json.loads(line) for line in lines]
    except ValueError as problem:
        raise DataError(f"{path(name) / file} does not have JSON on each line: {problem}") from None


def parts(name: str) -> tuple[str, ...]:
    """Which of the parts that may be absent are installed, where a benchmark's data come in several wheels."""
    return tuple(part for part in manifest(name).wheels if (home() / name / part).is_dir())


def present(wanted: Manifest, root: Path, *, remedy: str, sources: bool = False) -> list[str]:
    """The manifest's files that the folder holds. DataError if a domain's folder is there but incomplete.

    ``sources``: a file that can be made from a source counts as there if the source is.
    """

    def there(file: str) -> bool:
        made_from = wanted.sources.get(file) if sources else None
        return (root / file).is_file() or (made_from is not None and (root / made_from[0]).is_file())

    files: list[str] = []
    for group, members in wanted.groups().items():
        if group == LICENSE:
            files += [m for m in members if (root / m).is_file()]
        elif (root / group).exists() or not wanted.optional(group):
            for member in members:
                if not there(member):
                    raise DataError(f"{root / member} is missing: {remedy}")
            files += members
    return files


def check(file: Path, sha256: str, size: int, *, remedy: str, shown: Path | str | None = None) -> None:
    """DataError if a file is not the pinned one; it names the file, or ``shown``, and the remedy."""
    found = sha256_of(file)
    if found != sha256:
        detail = f"sha256 {found[:12]}, {file.stat().st_size} bytes; expected {sha256[:12]}, {size} bytes"
        raise DataError(f"{shown or file} is not the pinned version ({detail}): {remedy}")


def sha256_of(file: Path) -> str:
    """The sha256 sum of a file, in hexadecimal."""
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
