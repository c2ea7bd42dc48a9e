"""Responses kept on disk, for tests and for runs that must come out the same again."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl.basics.errors import MuarlError
from muarl.basics.files import write_text
from muarl.basics.untrusted import parse_json

log = logging.getLogger(__name__)


def request_key(url: str, body: Mapping[str, Any]) -> str:
    """A hash of everything that decides the answer: the server and the request. The API key is not part of it."""
    text = json.dumps([url, body], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class ResponseCache:
    """Responses on disk, one JSON file per request, written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def path(self, key: str) -> Path:
        """The file that holds the response to the request with this key."""
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> object | None:
        """The stored response body, or None if there is none or the file is damaged."""
        try:
            stored = parse_json(self.path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return stored.get("response") if isinstance(stored, dict) else None

    def put(self, key: str, request: Mapping[str, Any], response: object) -> None:
        """Store a response. A full or read-only disk is logged: a cache must not end a run."""
        try:
            # ASCII, because a response may hold half a surrogate pair, which no file encoding can carry.
            write_text(self.path(key), json.dumps({"request": request, "response": response}, default=str))
        except (OSError, MuarlError) as problem:
            log.warning("response cache %s: %s; the response is not stored", self.folder, problem)
