"""Public MCP servers that muarl's own scenarios run on: pinned, installed once into a private folder, never fetched
in the course of a run.

Each bundle is one folder under ``home()``: a virtual environment for what comes from PyPI, a node_modules folder for
what comes from npm. Nothing is installed globally, and no server needs the network once it is installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from muarl.basics import folders
from muarl.basics.errors import ConfigError, DataError

PINS = Path(__file__).parent / "pins"
_STAMP = "installed"
_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Bundle:
    """What is installed together."""

    name: str
    source: Literal["pypi", "npm"]
    pins: tuple[str, ...]
    """The files that name every package's version (npm: and its hash)."""

    @property
    def folder(self) -> Path:
        """Where it is, or would be, installed."""
        return home() / self.name

    @property
    def stamp(self) -> str:
        """What says that a folder holds just these versions."""
        return hashlib.sha256(b"".join((PINS / file).read_bytes() for file in self.pins)).hexdigest()

    def installed(self) -> bool:
        """Whether these versions are installed."""
        stamp = self.folder / _STAMP
        return stamp.is_file() and stamp.read_text(encoding="utf-8") == self.stamp


BUNDLES = {
    "git": Bundle("git", "pypi", ("git.txt",)),
    "sqlite": Bundle("sqlite", "pypi", ("sqlite.txt",)),
    "node": Bundle("node", "npm", ("package.json", "package-lock.json")),
}


@dataclass(frozen=True, slots=True)
class PublicServer:
    """A public server."""

    name: str
    package: str
    version: str
    bundle: str
    entry: tuple[str, ...]
    """How it is started inside its bundle's folder."""
    licence: str = "MIT"
    needs: tuple[str, ...] = ()
    """Other programs it uses."""

    def command(self, *arguments: str) -> tuple[str, ...]:
        """The command that starts it, installed or not."""
        folder = BUNDLES[self.bundle].folder
        program = "node" if BUNDLES[self.bundle].source == "npm" else str(folder / "bin" / "python")
        return (program, *(part.replace("{bundle}", str(folder)) for part in self.entry), *arguments)

    def missing(self) -> str | None:
        """What keeps it from running, with the remedy; None if nothing does."""
        for program in (*self.needs, *(("node",) if BUNDLES[self.bundle].source == "npm" else ())):
            if shutil.which(program) is None:
                return f"the MCP server {self.name} needs the program {program!r}, which is not on the PATH"
        if not BUNDLES[self.bundle].installed():
            return f"the MCP server {self.name} is not installed: run `muarl mcp install {self.name}`"
        return None


_NPM = "{bundle}/node_modules/@modelcontextprotocol"
SERVERS = {
    "filesystem": PublicServer(
        "filesystem", "@modelcontextprotocol/server-filesystem", "2026.8.31", "node",
        (f"{_NPM}/server-filesystem/dist/index.js",),
    ),
    "git": PublicServer("git", "mcp-server-git", "2026.10.19", "git", ("-m", "mcp_server_git"), needs=("git",)),
    "memory": PublicServer(
        "memory", "@modelcontextprotocol/server-memory", "2026.8.31", "node",
        (f"{_NPM}/server-memory/dist/index.js",),
    ),
    "sqlite": PublicServer(
        "sqlite", "mcp-server-sqlite", "2025.4.25", "sqlite",
        ("-c", "import sys; from mcp_server_sqlite import main; sys.exit(main())"),
    ),
}  # fmt: skip


def home() -> Path:
    """The folder that holds the installed servers: $MUARL_MCP_SERVERS, else "mcp" in the data folder."""
    named = os.environ.get("MUARL_MCP_SERVERS")
    return Path(named).expanduser().resolve() if named else folders.home().resolve() / "mcp"


def server(name: str) -> PublicServer:
    """The public server of that name. ConfigError if muarl knows none."""
    if name not in SERVERS:
        raise ConfigError(f"there is no MCP server {name!r} to install; known: {', '.join(SERVERS)}")
    return SERVERS[name]


def install(name: str, progress: Callable[[str], None] | None = None) -> Path:
    """Install a server's bundle, unless it is installed; whole or not at all. DataError says what kept it from it."""
    bundle = BUNDLES[server(name).bundle]
    if bundle.installed():
        return bundle.folder
    say = progress or (lambda text: None)
    home().mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=home(), prefix=f".{bundle.name}."))
    try:
        say(f"installing {server(name).package} {server(name).version} and what it needs into {bundle.folder}")
        (_from_npm if bundle.source == "npm" else _from_pypi)(bundle, staging)
        (staging / _STAMP).write_text(bundle.stamp, encoding="utf-8")
        staging.chmod(0o755)
        if bundle.folder.exists():
            shutil.rmtree(bundle.folder)
        staging.rename(bundle.folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return bundle.folder


def _from_pypi(bundle: Bundle, folder: Path) -> None:
    _run([sys.executable, "-m", "venv", str(folder)], folder, "Python's venv module")
    python = str(folder / "bin" / "python")
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check"]
    _run([python, "-m", "pip", "install", *quiet, "-r", str(PINS / bundle.pins[0])], folder, "pip")


def _from_npm(bundle: Bundle, folder: Path) -> None:
    for program in ("npm", "node"):
        if shutil.which(program) is None:
            raise DataError(f"the MCP servers from npm need {program}: install Node.js 20 or newer")
    for file in bundle.pins:
        shutil.copyfile(PINS / file, folder / file)
    # --ignore-scripts: no package may run code of its own while it is installed.
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], folder, "npm")


def _run(command: list[str], folder: Path, what: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise DataError(f"{what} did not finish within {_SECONDS} s: is there a network?") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-400:]
        raise DataError(f"{what} failed: {said}")
