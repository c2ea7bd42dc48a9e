"""Publishing: an environment is measured, and a folder written that a hub takes."""

from __future__ import annotations

import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError
from muarl.environments.registry import canonical, find, is_reference
from muarl_tools.publish.contents import CODE, MUARLS, Contents, package_name
from muarl_tools.publish.folder import WHEELS, Content, check_place, write_folder
from muarl_tools.publish.forms import FORMS
from muarl_tools.publish.measuring import EnvironmentFigures, measure
from muarl_tools.publish.other_process import measured_elsewhere
from muarl_tools.publish.own_files import OwnFiles, check_publishable, needed_files
from muarl_tools.publish.vendored_wheel import find_wheel

UNKNOWN = "unknown"
"""The licence of an environment whose author has named none, as hubs write it."""


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """What is to be published, and how."""

    name: str
    """An environment's name, or FILE.py:NAME that was approved."""

    form: str
    """One of ``FORMS``."""

    out: Path | None = None
    """The folder to write; None: one in the current folder, named after the environment and the form."""

    size: str | None = None
    """The size; None: the smallest."""

    tasks: int = 100
    """Tasks that are measured, and of each split of a data set."""

    seed: int = 0
    """The seed of generated tasks."""

    license: str | None = None
    """The licence of an environment of one's own, as hubs write it."""

    wheel: Path | None = None
    """muarl's wheel; None: see ``vendored_wheel``."""


def publish(request: PublishRequest) -> tuple[Contents, Path]:
    """Measure the environment and write the folder: what it was made of, and where it is.

    ConfigError for what cannot be published, or a place that is taken, before anything is measured; DataError where
    measuring or building the wheel fails.
    """
    environment = find(request.name, "--domain")
    check_publishable(environment, request.name, request.size)
    own = is_reference(request.name)
    if request.license is not None and not own:
        raise ConfigError(f"--license: {environment.name} is part of muarl, under {MUARLS}; remove --license")
    out = request.out or Path(f"{package_name(environment.name)}-{request.form}".replace("_", "-"))
    place = out.expanduser().resolve()
    check_place(place)
    size = request.size or (environment.sizes[0] if environment.sizes else None)
    with tempfile.TemporaryDirectory(prefix="muarl-publish-") as scratch:
        wheel = find_wheel(request.wheel, Path(scratch))
        if own:
            measured, files = _own(request, size, Path(scratch))
        else:
            measured, files = measure(environment, size=size, tasks=request.tasks, seed=request.seed), None
        contents = Contents(
            environment=environment,
            own=files,
            size=size,
            tasks=request.tasks,
            seed=request.seed,
            measured=measured,
            license=request.license or (UNKNOWN if own else MUARLS),
            wheel=wheel,
            licenses=_licenses(wheel, f"{WHEELS}/" if own else ""),
        )
        write_folder(place, FORMS[request.form](contents), contents.record(request.form))
    return contents, out


def _own(request: PublishRequest, size: str | None, scratch: Path) -> tuple[EnvironmentFigures, OwnFiles]:
    """Measure an environment of one's own where it lies, then a copy of the files that it needed there.

    ConfigError if the copy gives other tasks or figures: then it depends on something that is not copied.
    """
    reference = canonical(request.name)
    asked: dict[str, Any] = {"size": size, "tasks": request.tasks, "seed": request.seed, "folder": scratch}
    first = measured_elsewhere(reference, hash_seed=1, **asked)
    files = needed_files(reference, first)
    copy = scratch / CODE
    for name, path in files.files.items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(path.read_bytes())
    copied = f"{copy / files.file}:{files.name}"
    try:
        again = measured_elsewhere(copied, hash_seed=2, **asked)
        needed_files(copied, again)
    except ConfigError as problem:
        raise ConfigError(
            f"{request.name}: a copy of its files cannot be played elsewhere ({problem}): let its code name files "
            "relative to itself, such as Path(__file__).parent"
        ) from None
    if (again.measured, again.tasks) != (first.measured, first.tasks):
        raise ConfigError(
            f"{request.name}: a copy of its files gives other tasks or figures: muarl domains check {request.name} "
            "says what does not follow from the seed"
        )
    return again.measured, files


def _licenses(wheel: Path, place: str) -> dict[str, Content]:
    """The licence and notices in the wheel of muarl."""
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if ".dist-info/licenses/" in n and not n.endswith("/")]
        return {f"{place}{Path(name).name}": archive.read(name) for name in sorted(names)}
