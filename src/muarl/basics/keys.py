"""Keys and tokens: from the environment, or from a file that nobody else can read. Never from a configuration.

A secret called NAME is the environment variable NAME or, where that is not set, the one line of the file that NAME_FILE
names (as containers and Kubernetes pass secrets). No message of this module holds a secret.

A key belongs to a server. A configuration file may name an address and a key's variable, but whether they belong
together is for the person's environment to say: NAME_HOST lists the hosts that the key NAME is for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from muarl.basics.errors import ConfigError

LONGEST = 8192
"""Bytes of a secret's file."""

PROVIDERS: Mapping[str, str] = {
    "OPENAI_API_KEY": "https://api.openai.com",
    "ANTHROPIC_API_KEY": "https://api.anthropic.com",
    "CEREBRAS_API_KEY": "https://api.cerebras.ai",
    "DEEPSEEK_API_KEY": "https://api.deepseek.com",
    "FIREWORKS_API_KEY": "https://api.fireworks.ai",
    "GEMINI_API_KEY": "https://generativelanguage.googleapis.com",
    "GROQ_API_KEY": "https://api.groq.com",
    "MISTRAL_API_KEY": "https://api.mistral.ai",
    "OPENROUTER_API_KEY": "https://openrouter.ai",
    "TOGETHER_API_KEY": "https://api.together.xyz",
    "XAI_API_KEY": "https://api.x.ai",
}
"""Names that providers' own documentation gives their keys, and where those keys go."""


def read_secret(name: str) -> str:
    """The secret called ``name``, without white space around it; empty if there is none.

    ConfigError if its file cannot be read or others can, or if it holds what no key consists of (printable ASCII
    without spaces).
    """
    if not name:
        return ""
    secret = os.environ.get(name, "").strip()
    where = name
    if not secret and (path := os.environ.get(f"{name}_FILE", "").strip()):
        where = f"{name}_FILE ({path})"
        secret = _read(Path(path).expanduser(), where).strip()
        if not secret:
            raise ConfigError(f"{where}: the file is empty; write only the key into it")
    if secret and not (secret.isascii() and secret.isprintable() and " " not in secret):
        raise ConfigError(f"{where} holds characters that no API key has: set it again, without quotes or line breaks")
    return secret


def is_named(name: str) -> bool:
    """Whether the environment says where the secret is; nothing is read."""
    return bool(name) and bool(os.environ.get(name, "").strip() or os.environ.get(f"{name}_FILE", "").strip())


def is_meant_for(name: str, url: str) -> bool:
    """Whether the environment says that the key called ``name`` is for the server at ``url``.

    NAME_HOST lists hosts, as HOST, HOST:PORT or a URL, between commas or spaces. Without it, a key named as a provider
    names it is for that provider, and OPENAI_API_KEY for OPENAI_BASE_URL where that is set. Beyond this machine a key
    goes over https, unless the environment names the host with http://.
    """
    listed = os.environ.get(f"{name}_HOST", "").replace(",", " ").split()
    own = os.environ.get("OPENAI_BASE_URL", "").strip() if name == "OPENAI_API_KEY" else ""
    hosts = [host for host in (*listed, own) if host] or [PROVIDERS.get(name, "")]
    address = _address(url)
    return address is not None and any(_same(address, _address(host)) for host in hosts)


def is_loopback(host: str) -> bool:
    """Whether the name or number of a host is this machine's own."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(url: str) -> str:
    """The host of an address, with its port where that is given, as NAME_HOST takes it; empty if there is none."""
    address = _address(url)
    if address is None:
        return ""
    _, host, port = address
    name = f"[{host}]" if ":" in host else host
    return name if port is None or urlsplit(url).port is None else f"{name}:{port}"


Address = tuple[str, str, int | None]
"""Scheme, host, and port; the scheme is empty and the port None where nothing was said."""


def _address(text: str) -> Address | None:
    """What a URL, HOST or HOST:PORT names; None if it is none of them."""
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.username or parts.password or any(c.isspace() or c == "\\" for c in text):
        return None
    return parts.scheme, host, port or {"http": 80, "https": 443}.get(parts.scheme)


def _same(asked: Address, meant: Address | None) -> bool:
    if meant is None or asked[1] != meant[1] or (meant[2] is not None and asked[2] != meant[2]):
        return False
    return asked[0] == "https" or meant[0] == "http" or is_loopback(asked[1])


def _read(path: Path, where: str) -> str:
    """A file's text, from one opening of it, so that what was looked at is what is read."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe must not hang it
    except OSError as problem:
        raise ConfigError(f"{where}: {problem.strerror or problem}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{where}: this is no plain file")
        if os.name == "posix":
            if status.st_mode & 0o077:
                mode = oct(stat.S_IMODE(status.st_mode))[2:]
                raise ConfigError(f"{where}: others can read or change it (mode {mode}): run `chmod 600 {path}`")
            if status.st_uid not in (0, os.geteuid()):
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
