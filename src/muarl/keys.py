"""Keys and tokens: from the environment, or from a file that nobody else can read. Never from a configuration.

A secret called NAME is the environment variable NAME or, where that is not set, the one line of the file that NAME_FILE
names (as containers and Kubernetes pass secrets). No message of this module holds a secret.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from muarl.errors import ConfigError

LONGEST = 8192
"""Bytes of a secret's file."""


def read_secret(name: str) -> str:
    """The secret called ``name``, without white space around it; empty if there is none.

    ConfigError if its file cannot be read or others can, or if it holds what no key consists of (printable ASCII
    without spaces).
    """
    secret = os.environ.get(name, "").strip()
    where = name
    if not secret and (path := os.environ.get(f"{name}_FILE", "").strip()):
        where = f"{name}_FILE ({path})"
        secret = _read(Path(path).expanduser(), where).strip()
        if not secret:
            raise ConfigError(f"{where}: the file is empty; write the key into it, and nothing else")
    if secret and not (secret.isascii() and secret.isprintable() and " " not in secret):
        raise ConfigError(f"{where} holds characters that no API key has: set it again, without quotes or line breaks")
    return secret


def is_named(name: str) -> bool:
    """Whether the environment says where the secret is; nothing is read."""
    return bool(os.environ.get(name, "").strip() or os.environ.get(f"{name}_FILE", "").strip())


def _read(path: Path, where: str) -> str:
    """A file's text, from one opening of it, so that what was looked at is what is read."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe must not hang it
    except OSError as problem:
        raise ConfigError(f"{where}: {problem.strerror or problem}") from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{where}: this is no plain file")
        if os.name == "posix":
            if found.st_mode & 0o077:
                shown = oct(stat.S_IMODE(found.st_mode))[2:]
                raise ConfigError(f"{where}: others can read or change it (mode {shown}): run `chmod 600 {path}`")
            if found.st_uid not in (0, os.geteuid()):
                raise ConfigError(f"{where}: it belongs to another user: make a copy of your own, with mode 600")
        data = os.read(handle, LONGEST + 1)
    finally:
        os.close(handle)
    if len(data) > LONGEST:
        raise ConfigError(f"{where}: longer than {LONGEST} bytes; a key's file holds the key alone")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: this is no text; a key's file holds the key alone") from None
