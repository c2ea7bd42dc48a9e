"""Where benchmark data lives on this machine, and how it gets there: whole, checked by sha256, or not at all.

The package ships no benchmark data, only a manifest per benchmark (repository, commit, and the size and sha256 of each
file). ``add`` copies from a folder, ``fetch`` downloads the same commit, ``path`` gives the installed folder. What a
benchmark keeps as Python source (TAU1's tasks) is installed as JSON; the source is read, never run. BFCL's data come in
wheels, one for each revision, which ``fetch`` gets through pip; their files are read from the archive.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from muarl.errors import DataError

RAW = "https://raw.githubusercontent.com"
_MANIFESTS = Path(__file__).parent / "benchmarks" / "manifests"
_LICENSE = "LICENSE"
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
    licence: str = _LICENSE

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
        inside = self.licence if file == _LICENSE else f"{self.folder}/{file}"
        return f"{RAW}/{self.repository}/{self.commit}/{inside}"


def known() -> tuple[str, ...]:
    """The benchmarks whose data this version can install."""
    return tuple(sorted(p.stem for p in _MANIFESTS.glob("*.json")))


@cache
def manifest(name: str) -> Manifest:
    """The pinned manifest of a benchmark. DataError if there is none of that name."""
    file = _MANIFESTS / f"{name}.json"
    if name not in known():
        raise DataError(f"there is no benchmark {name!r}; known: {', '.join(known())}")
    raw = json.loads(file.read_text(encoding="utf-8"))
    files = {k: (v["sha256"], v["bytes"]) for k, v in raw["files"].items()}
    made = {k: v["source"] for k, v in raw["files"].items() if "source" in v}
    sources = {k: (v["file"], v["sha256"], v["bytes"]) for k, v in made.items()}
    wheels = {k: (v["requirement"], v["sha256"]) for k, v in raw.get("wheels", {}).items()}
    licence = raw.get("license_file", _LICENSE)
    return Manifest(raw["name"], raw["repository"], raw["commit"], raw["folder"], files, sources, wheels, licence)


def home() -> Path:
    """The folder that holds all data: $MUARL_DATA, else the platform's cache folder."""
    named = os.environ.get("MUARL_DATA")
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "muarl" / "data"


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
        for file in _present(wanted, folder, remedy=f"run `muarl data add {name} --from DIR` again"):
            _check(folder / file, *wanted.files[file], remedy=f"run `muarl data add {name} --from DIR` again")
        _verified[folder] = stamp
    return folder


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


def add(name: str, source: Path) -> Path:
    """Install a benchmark's data from a folder: the repository's checkout, or its data folder. Returns where they are.

    Where the data come in wheels, ``source`` may also be a wheel, a folder of wheels or an unpacked one.

    A domain's folder that is absent is left out; one that is there must be complete. DataError names the first file
    that is missing or differs from the pinned commit; nothing is installed then.
    """
    wanted = manifest(name)
    if wanted.wheels:
        return _add_from_wheels(wanted, source)
    root = _find_root(wanted, source)
    remedy = f"take it from {wanted.repository} at commit {wanted.commit[:7]}"
    files = _present(wanted, root, remedy=remedy, sources=True)
    licence = source / wanted.licence  # in a checkout it stands above the data folder
    if _LICENSE in wanted.files and _LICENSE not in files and licence.is_file():
        if _sha256(licence) == wanted.files[_LICENSE][0]:
            files.append(_LICENSE)
    with _staging(name) as staging:
        for file in files:
            found = root / file
            if file == _LICENSE and not found.is_file():
                found = source / wanted.licence
            if not found.is_file() and file in wanted.sources:
                found = root / wanted.sources[file][0]
            target = staging / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found, target)
            if found != root / file and file in wanted.sources:
                _convert(wanted, file, target, remedy=_pinned(wanted), shown=found)
            _check(target, *wanted.files[file], remedy=_pinned(wanted), shown=found)
        return _install(name, staging)


def _add_from_wheels(wanted: Manifest, source: Path) -> Path:
    from muarl.benchmarks.bfcl.sources import collect

    members = {group: files for group, files in wanted.groups().items() if group in wanted.wheels}
    remedy = "take it from " + " and ".join(requirement for requirement, _ in wanted.wheels.values())
    with _staging(wanted.name) as staging:
        found = collect(source, members)
        for file, (content, place) in found.items():
            if file == _LICENSE and hashlib.sha256(content).hexdigest() != wanted.files[_LICENSE][0]:
                continue  # whatever licence stands there, it is not that of the data
            target = staging / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            _check(target, *wanted.files[file], remedy=remedy, shown=place)
        _keep(wanted, staging, [files for files in wanted.groups().values() if files[0] not in found])
        return _install(wanted.name, staging)


def _keep(wanted: Manifest, staging: Path, groups: Iterable[list[str]]) -> None:
    """Take over what is installed already and was not brought anew; what is not whole any more is left behind."""
    for files in groups:
        old = [home() / wanted.name / file for file in files]
        if all(o.is_file() and _sha256(o) == wanted.files[f][0] for o, f in zip(old, files, strict=True)):
            for known, file in zip(old, files, strict=True):
                (staging / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(known, staging / file)


def fetch(name: str, progress: Callable[[str, int, int], None] | None = None) -> Path:
    """Download a benchmark's data at the pinned commit. ``progress(file, number, total)`` is called before each file.

    What comes in wheels is downloaded by pip, with the settings and from the index that pip has here.
    DataError if the network or a checksum fails; nothing is installed then.
    """
    wanted = manifest(name)
    if wanted.wheels:
        with tempfile.TemporaryDirectory(prefix="muarl-") as folder:
            for number, (requirement, sha256) in enumerate(wanted.wheels.values(), 1):
                if progress is not None:
                    progress(requirement, number, len(wanted.wheels))
                _pip_download(name, requirement, sha256, Path(folder))
            return _add_from_wheels(wanted, Path(folder))
    with _staging(name) as staging:
        for number, (file, (sha256, size)) in enumerate(wanted.files.items(), 1):
            if progress is not None:
                progress(file, number, len(wanted.files))
            target = staging / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_download(wanted.url(file), wanted.sources.get(file, ("", *wanted.files[file]))[2]))
            if file in wanted.sources:
                _convert(wanted, file, target, remedy="try again later", shown=wanted.url(file))
            _check(target, sha256, size, remedy="try again later", shown=wanted.url(file))
        return _install(name, staging)


def _find_root(wanted: Manifest, source: Path) -> Path:
    if not source.is_dir():
        raise DataError(f"--from {source}: no such folder")
    for candidate in (source, source / wanted.folder, source / wanted.name, source / "data" / wanted.name):
        if any((candidate / file).is_file() for file in wanted.files if file != _LICENSE):
            return candidate
    example = next(f for f in wanted.files if f != _LICENSE)
    raise DataError(
        f"--from {source}: neither it nor its {wanted.folder} holds the data of {wanted.name} (such as {example})"
    )


def _present(wanted: Manifest, root: Path, *, remedy: str, sources: bool = False) -> list[str]:
    """The manifest's files that the folder holds. DataError if a domain's folder is there but incomplete.

    ``sources``: a file that can be made from a source counts as there if the source is.
    """

    def there(file: str) -> bool:
        made_from = wanted.sources.get(file) if sources else None
        return (root / file).is_file() or (made_from is not None and (root / made_from[0]).is_file())

    files: list[str] = []
    for group, members in wanted.groups().items():
        if group == _LICENSE:
            files += [m for m in members if (root / m).is_file()]
        elif (root / group).exists() or not wanted.optional(group):
            for member in members:
                if not there(member):
                    raise DataError(f"{root / member} is missing: {remedy}")
            files += members
    return files


def _check(file: Path, sha256: str, size: int, *, remedy: str, shown: Path | str | None = None) -> None:
    found = _sha256(file)
    if found != sha256:
        detail = f"sha256 {found[:12]}, {file.stat().st_size} bytes; expected {sha256[:12]}, {size} bytes"
        raise DataError(f"{shown or file} is not the pinned version ({detail}): {remedy}")


def _sha256(file: Path) -> str:
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _convert(wanted: Manifest, file: str, target: Path, *, remedy: str, shown: Path | str) -> None:
    """Turn a task file in Python, once it is found to be the pinned one, into the JSON file that is installed."""
    from muarl.benchmarks.tau1_source import tasks_json

    _check(target, *wanted.sources[file][1:], remedy=remedy, shown=shown)
    target.write_bytes(tasks_json(target.read_text(encoding="utf-8"), str(shown)).encode())


def _pinned(wanted: Manifest) -> str:
    return f"check out {wanted.repository} at commit {wanted.commit}"


def _download(url: str, size: int) -> bytes:
    """What is at ``url``: ``size`` bytes, and no more than one beyond, however much the server sends."""
    problem: Exception | None = None
    for _ in range(3):
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return bytes(answer.read(size + 1))
        except (urllib.error.URLError, OSError) as failure:
            problem = failure
            if isinstance(failure, urllib.error.HTTPError) and failure.code < 500:
                break
    reason = getattr(problem, "reason", problem)
    raise DataError(
        f"{url} could not be downloaded: {reason}. Where there is no network, use `muarl data add NAME --from DIR`"
    )


def _pip_download(name: str, requirement: str, sha256: str, folder: Path) -> None:
    """Get a wheel through pip, which checks its hash; nothing of it is built, installed or run."""
    asked = folder / f"{sha256[:12]}.txt"
    asked.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--ignore-requires-python", "--require-hashes"]
    command += ["--dest", str(folder), "--requirement", str(asked)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        problem = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    except (OSError, subprocess.TimeoutExpired) as failure:
        problem = str(failure)
    if problem:
        raise DataError(
            f"{requirement} could not be downloaded: {problem}. Where pip cannot, get the wheel in another way and use "
            f"`muarl data add {name} --from WHEEL`"
        )


@contextmanager
def _staging(name: str) -> Iterator[Path]:
    """A folder beside the final one, removed whatever happens."""
    home().mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=home(), prefix=f".{name}."))
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _install(name: str, staging: Path) -> Path:
    """Put the staged folder in place in one step; an older one steps aside and is put back if that fails."""
    staging.chmod(0o755)
    target = home() / name
    aside = Path(tempfile.mkdtemp(dir=home(), prefix=f".{name}.old.")) / "old"
    try:
        if target.exists():
            target.rename(aside)
        try:
            staging.rename(target)
        except BaseException:
            if aside.exists() and not target.exists():
                aside.rename(target)
            raise
    finally:
        shutil.rmtree(aside.parent, ignore_errors=True)
    _verified.pop(target, None)
    return target
