"""What a configuration file may not decide by itself: where keys go, and which of this machine's files are read.

A configuration may come from somebody else, as a YAML file or in a run's folder. So it is known of each setting
whether it stands in a file, in a preset of muarl's, or was given on the command line (``Origin``), and what stands in a
file is held to this:

- a key goes only to a server that the environment says it is for (``keys.is_meant_for``);
- files lie below the folder of the configuration, links followed;
- what is written lies below that folder, or below the folder that the person works in;
- addresses that get weights or a cluster's trust are this machine's own.

The command line may say anything. A run's folder may come from somebody else, so its own config.yaml cannot vouch for
itself: what the person set on the command line when the run began stands in the state folder ($XDG_STATE_HOME, else
~/.local/state) under ``muarl``, one small file for each run, named after a hash of its path (``remember``).
``--resume`` then asks nothing that was answered before (``recall``; for code: ``runs/own_code.py``). Settings made in
Python are the author's own.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from muarl.basics.errors import ConfigError, MuarlError
from muarl.basics.files import write_text
from muarl.basics.keys import host_of, is_loopback, is_meant_for
from muarl.basics.untrusted import read_json_object
from muarl.config.mixing import unnumbered
from muarl.config.section import EndpointConfig
from muarl.config.sections import RunConfig, fields_of

log = logging.getLogger(__name__)

Approved = Mapping[str, tuple[str, ...]]
"""By setting, the values that the person has approved."""


def recall(config_file: Path) -> Approved:
    """What was approved for the run that this file describes; nothing where nothing is known."""
    try:
        place = _file(config_file)
        if os.name == "posix" and place.stat().st_uid != os.geteuid():
            return {}
        settings = read_json_object(place)["settings"]
        return {str(name): tuple(map(str, values)) for name, values in settings.items()}
    except (OSError, MuarlError, KeyError, TypeError, AttributeError, RuntimeError):  # the last: there is no home
        return {}


def remember(config_file: Path, settings: Mapping[str, str]) -> None:
    """Approve these values too for the run that this file describes. A state folder that cannot be written is logged:
    the run works, and asks again when it is resumed."""
    before = recall(config_file)
    merged = {
        n: sorted({*before.get(n, ()), *((settings[n],) if n in settings else ())}) for n in {**before, **settings}
    }
    if not settings or all(settings[name] in before.get(name, ()) for name in settings):
        return
    try:
        place = _file(config_file)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_text(place, json.dumps({"config": str(config_file.resolve()), "settings": merged}, indent=1) + "\n")
    except (OSError, MuarlError, RuntimeError) as problem:
        log.warning("%s; when this run is resumed, addresses and files must be named again", problem)


def state_home() -> Path:
    """The folder of what is remembered."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "muarl" / "approved"


def _file(config_file: Path) -> Path:
    name = hashlib.sha256(str(config_file.expanduser().resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return state_home() / f"{name[:32]}.json"


Keys = tuple[str, ...]
KEY = EndpointConfig.model_fields["api_key_env"].default

FILES = ("domain.policy", "domain.tasks", "sft.demonstrations_file", "coldstart.scenarios")
"""Settings that name files or folders whose text is read."""

WRITTEN = ("runs_dir", "resume", "retrieval.cache", "engine.update_folder")
"""Settings that name folders in which something is written."""

JUDGES = ("eval.judge", "eval.user_judge", "eval.audit_judge", "coldstart.judge")
ADDRESSES = ("engine.urls", "cluster.address")
"""Servers that get weights and MUARL_ENGINE_TOKEN, and a cluster, whose head may run code in this process."""

RUNS = Path("runs")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a setting was given."""

    label: str
    """How messages name the place."""
    kind: Literal["file", "preset", "command"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the settings of a configuration come from."""

    origins: Mapping[Keys, Origin]
    """By key path; what is missing is a default."""
    file: Path | None
    """The configuration that the person named, None for a preset."""
    approved: Approved
    """What was approved before for exactly that file."""

    def in_file(self, name: str) -> Origin | None:
        """The file that has a say in a setting (or in what stands below it); None if none has."""
        keys = tuple(name.split("."))
        plain = unnumbered(keys)  # what a file says of domain.policy counts for each domain of a list, and vice versa
        for path, origin in self.origins.items():
            ways = ((path, keys), (unnumbered(path), keys), (path, plain))
            if origin.kind == "file" and any(way[: len(prefix)] == prefix for way, prefix in ways):
                return origin
        return None

    def is_approved(self, name: str, value: str) -> bool:
        """Whether the person has approved this value of a setting before."""
        return value in self.approved.get(name, ())

    def was_given(self, name: str) -> bool:
        """Whether the command line names a setting itself."""
        origin = self.origins.get(tuple(name.split(".")))
        return origin is not None and origin.kind == "command"


def trusted(config: RunConfig, provenance: Provenance, *, starts: bool = True) -> RunConfig:
    """The configuration as far as it may be followed: an address that stands in a file gets no key but one that is
    meant for it. ConfigError for a key, a file or an address that the person must name first. ``starts``: whether a run
    may be started by it; else it does not matter where runs are written."""
    if provenance.file is None:
        return config
    settings = _Settings(config)
    for name in settings.files():
        _check_files(name, settings, provenance)
    for name in WRITTEN:
        # A run that the person resumes is written where it lies, and not in runs_dir.
        if name != "runs_dir" or (starts and not (config.resume is not None and provenance.was_given("resume"))):
            _check_written(name, settings, provenance)
    for name in ADDRESSES:
        _check_addresses(name, settings.value(name), provenance)
    for name, endpoint in settings.endpoints():
        if not _key_may_go(name, endpoint, provenance):
            settings = settings.replaced(name, endpoint.model_copy(update={"api_key_env": ""}))
    for name in JUDGES:
        settings = _without_key(name, settings, provenance)
    return settings.config


def to_approve(config: RunConfig) -> dict[str, str]:
    """By setting, what is to be remembered of a run: all that a file could not have decided."""
    settings = _Settings(config)
    out = {name: _asked(endpoint) for name, endpoint in settings.endpoints()}
    for name in JUDGES:
        endpoint = _judge(settings.value(name))
        if endpoint is not None:
            out[name] = _asked(endpoint)
    for name in settings.files():
        paths = [str(path) for path in settings.paths(name)]
        out |= {name: "\n".join(paths)} if paths else {}
    for name in WRITTEN:
        folders = [] if name == "resume" else settings.paths(name)
        out |= {name: str(folders[0])} if folders else {}
    for name in ADDRESSES:
        value = settings.value(name)
        out |= {name: str(value)} if value else {}
    return out


@dataclass(frozen=True, slots=True)
class _Settings:
    """A configuration by the names of its settings."""

    config: RunConfig

    def value(self, name: str) -> Any:
        """What a setting says."""
        value: Any = self.config
        keys = name.split(".")
        if keys[0] == "domain" and len(self.config.domains) > 1:
            numbered = len(keys) > 1 and keys[1].isdigit()
            value, keys = (self.config.domains[int(keys[1])], keys[2:]) if numbered else (None, [])
        for key in keys:
            value = getattr(value, key, None)
        return value

    def replaced(self, name: str, value: Any) -> _Settings:
        """With one setting changed."""
        return _Settings(_replaced(self.config, name.split("."), value))

    def files(self) -> Iterator[str]:
        """The settings that name files; of several domains those of each, by its number."""
        count = len(self.config.domains)
        for name in FILES:
            section, _, key = name.partition(".")
            several = section == "domain" and count > 1
            yield from (f"domain.{number}.{key}" for number in range(count)) if several else (name,)

    def endpoints(self) -> Iterator[tuple[str, EndpointConfig]]:
        """(setting, section) of each endpoint that the configuration describes."""
        for name, section, _ in fields_of(RunConfig):
            if section is EndpointConfig and isinstance(value := self.value(name), EndpointConfig):
                yield name, value

    def paths(self, name: str) -> list[Path]:
        """The files that a setting names, links followed. Scenarios may also be environments' names, or references to
        their code, whose import is a matter of its own (cli/environment_approval.py)."""
        value = self.value(name)
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        is_path: Callable[[Any], bool] = lambda v: (  # noqa: E731
            isinstance(v, Path) or (":" not in v and ("/" in v or Path(v).is_dir()))
        )
        return [Path(v).expanduser().resolve() for v in values if is_path(v)]


def _check_files(name: str, settings: _Settings, provenance: Provenance) -> None:
    origin = provenance.in_file(name)
    paths = settings.paths(name)
    if origin is None or not paths or provenance.is_approved(name, "\n".join(map(str, paths))):
        return
    assert provenance.file is not None
    folder = provenance.file.expanduser().resolve().parent
    # Demonstrations are learned from, not sent to anybody, and those of `muarl coldstart` lie among the runs.
    allowed = [folder, RUNS.resolve()] if name == "sft.demonstrations_file" else [folder]
    for path in paths:
        try:
            parts = [path, *(p.resolve() for p in path.iterdir())] if path.is_dir() else [path]
        except OSError as problem:
            raise ConfigError(f"{origin.label}: {name}: {path} cannot be read: {problem.strerror or problem}") from None
        for part in parts:
            if not any(_below(part, place) for place in allowed):
                raise ConfigError(
                    f"{origin.label}: {name} names {part}, which is not below the configuration's own folder {folder}. "
                    f"A configuration may not read other files: to allow this one, give "
                    f"{name}={_shown(settings.value(name))} on the command line"
                )
            if part.exists() and not (part.is_file() or part.is_dir()):
                raise ConfigError(
                    f"{origin.label}: {name} names {part}, which is neither a file nor a folder: reading a pipe or a "
                    "device may never end. Put a file in its place"
                )


def _check_written(name: str, settings: _Settings, provenance: Provenance) -> None:
    origin, paths = provenance.in_file(name), settings.paths(name)
    if origin is None or not paths or paths == [RUNS.resolve()] or provenance.is_approved(name, str(paths[0])):
        return
    assert provenance.file is not None
    (path,), folder, here = paths, provenance.file.expanduser().resolve().parent, Path.cwd().resolve()
    around = [one for one in (folder.parent, folder.parent.parent) if not _holds_home(one)]
    if name == "runs_dir" and path in around:  # the file is a run's own, or a suite's
        return
    for place in (folder, here):
        if path.is_relative_to(place) and not any(p.startswith(".") for p in path.relative_to(place).parts):
            return
    raise ConfigError(
        f"{origin.label}: {name} names {path}, which is neither below the configuration's own folder {folder} nor "
        f"below the working folder. A configuration may not decide to write elsewhere: to allow it, give "
        f"{name}={_shown(settings.value(name))} on the command line"
    )


def _below(path: Path, folder: Path) -> bool:
    """Whether a file is one of a folder's own. A home folder, or one above it, holds everything; what is hidden is not
    part of a configuration."""
    if not path.is_relative_to(folder) or _holds_home(folder):
        return False
    return not any(part.startswith(".") for part in path.relative_to(folder).parts)


def _holds_home(folder: Path) -> bool:
    try:
        return Path.home().resolve().is_relative_to(folder)
    except RuntimeError:  # this user has none, as in some containers
        return False


def _check_addresses(name: str, value: Any, provenance: Provenance) -> None:
    origin = provenance.in_file(name)
    if origin is None or not value or provenance.is_approved(name, str(value)):
        return
    for address in (value,) if isinstance(value, str) else value:
        host = address.rpartition(":")[0].strip("[]") or address
        if address not in ("local", "auto") and not is_loopback(host):
            raise ConfigError(
                f"{origin.label}: {name} names {address}, and a configuration may not name other machines: if "
                f"you trust it with this run's weights, give {name}={_shown(value)} on the command line"
            )


def _key_may_go(name: str, endpoint: EndpointConfig, provenance: Provenance) -> bool:
    """Whether this endpoint may get the key that it names; False where it gets none. ConfigError if a file names
    another key than the usual one for a server that this key is not known to be for."""
    address, key = provenance.in_file(f"{name}.base_url"), provenance.in_file(f"{name}.api_key_env")
    address = address if endpoint.base_url else None
    key = key if endpoint.api_key_env != KEY else None
    if not endpoint.api_key_env or (address is None and key is None):
        return True
    url = _url(endpoint)
    if is_meant_for(endpoint.api_key_env, url) or provenance.is_approved(name, _asked(endpoint)):
        return True
    if key is None and not provenance.was_given(f"{name}.api_key_env"):
        return False
    place = key or address
    assert place is not None
    host, key_env = host_of(url), endpoint.api_key_env
    raise ConfigError(
        f"{place.label}: {name} would send the key in {key_env} to {host}, and a configuration may not decide that: if "
        f"{key_env} is the key of {host}, set {key_env}_HOST={host} in the environment, or give {name}.base_url={url} "
        f"and {name}.api_key_env={key_env} on the command line"
    )


def _without_key(name: str, settings: _Settings, provenance: Provenance) -> _Settings:
    """A judge's endpoint without a key that it may not have; see ``_key_may_go``."""
    endpoint, origin = _judge(settings.value(name)), provenance.in_file(name)
    if endpoint is None or origin is None:
        return settings
    parts = {tuple(f"{name}.{field}".split(".")): origin for field in ("base_url", "api_key_env")}
    if not _key_may_go(name, endpoint, Provenance(parts, provenance.file, provenance.approved)):
        return settings.replaced(name, endpoint.model_copy(update={"api_key_env": ""}).spec)
    return settings


def _judge(spec: Any) -> EndpointConfig | None:
    return EndpointConfig.of_spec(spec) if isinstance(spec, str) and spec.startswith("endpoint:") else None


def _url(endpoint: EndpointConfig) -> str:
    from muarl.endpoints.config import EndpointSettings as Client

    return Client(model="any", base_url=endpoint.base_url).url


def _asked(endpoint: EndpointConfig) -> str:
    return f"{endpoint.api_key_env} {_url(endpoint)}"


def _shown(value: Any) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def _replaced(config: Any, keys: list[str], value: Any) -> Any:
    """The configuration with one setting changed."""
    inner = value if len(keys) == 1 else _replaced(getattr(config, keys[0]), keys[1:], value)
    return config.model_copy(update={keys[0]: inner})
