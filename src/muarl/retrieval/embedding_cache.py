"""Embeddings kept on disk, so that no text is embedded twice by the same model."""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from muarl.basics.errors import MuarlError
from muarl.basics.files import whole_file

log = logging.getLogger(__name__)
Vector = NDArray[np.float32]


def content_hash(text: str) -> str:
    """The sha256 of a text, as hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class EmbeddingCache:
    """A folder with a file for each text and model, written whole or not at all; any number of processes may share it.

    Files: FOLDER/MODEL/HASH[:2]/HASH.npy, where MODEL is a hash of all that decides what a text's embedding is
    (``Embedder.name``) and HASH one of the text.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def path(self, model: str, text: str) -> Path:
        """The file that holds a text's embedding."""
        key = content_hash(text)
        return self.folder / content_hash(model)[:16] / key[:2] / f"{key}.npy"

    def get(self, model: str, text: str) -> Vector | None:
        """A text's embedding, None if there is none, or its file is damaged."""
        try:
            found = np.load(io.BytesIO(self.path(model, text).read_bytes()), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        usable = isinstance(found, np.ndarray) and found.dtype == np.float32 and found.ndim == 1 and found.size
        return found if usable and bool(np.isfinite(found).all()) else None

    def put(self, model: str, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Store embeddings. A full or read-only disk is logged: a cache must not end a run."""
        for text, vector in zip(texts, vectors, strict=True):
            try:
                with whole_file(self.path(model, text), binary=True) as file:
                    np.save(file, np.asarray(vector, np.float32), allow_pickle=False)
            except (OSError, MuarlError) as problem:
                log.warning("embedding cache %s: %s; embeddings are not stored", self.folder, problem)
                return
