"""What makes embeddings: a model behind an endpoint, a model of this machine, or hashes of words."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from muarl.basics.errors import ConfigError
from muarl.basics.extras import require
from muarl.endpoints.client import Endpoint
from muarl.types.episode import Usage

T = TypeVar("T")

BATCH = 64
"""Texts of one request."""

QWEN_TASK = "Given a web search query, retrieve relevant passages that answer the query"
"""What queries begin with for Qwen's embedding models, by their model card (and TAU2)."""


def query_instruction(model: str) -> str:
    """The task that a model's queries are to name, empty if none: Qwen's embedding models want one."""
    return QWEN_TASK if "qwen" in model.lower() else ""


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of coroutines that run at the same time. When one fails, its error is raised, and the rest is broken
    off."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


class OwnLoop:
    """An endpoint that may also be asked from another event loop than the one it serves, as plain code does."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._home: asyncio.AbstractEventLoop | None = None
        self._elsewhere = Usage()

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return self.endpoint.usage + self._elsewhere

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[Endpoint]:
        """The endpoint, or one like it for this block."""
        loop = asyncio.get_running_loop()
        if self._home is None or self._home.is_closed():
            self._home = loop
        if self._home is loop:
            yield self.endpoint
            return
        async with Endpoint(self.endpoint.config) as other:
            try:
                yield other
            finally:
                self._elsewhere += other.usage

    async def aclose(self) -> None:
        """Close the endpoint's connections."""
        self._home = None
        await self.endpoint.aclose()


class EndpointEmbedder:
    """A model behind an OpenAI-compatible server (``/v1/embeddings``). ``instruction``: what queries are to name as
    their task (``Instruct: TASK\\nQuery:TEXT``); None leaves it to ``query_instruction``."""

    def __init__(self, endpoint: Endpoint, *, instruction: str | None = None) -> None:
        self._endpoint = OwnLoop(endpoint)
        self.instruction = query_instruction(endpoint.model) if instruction is None else instruction

    @property
    def model(self) -> str:
        """The model's name, as its server knows it."""
        return self._endpoint.endpoint.model

    @property
    def name(self) -> str:
        """Model, server and further fields of the request; queries also depend on the instruction."""
        config = self._endpoint.endpoint.config
        parts = [config.model, config.url, self.instruction, *(f"{k}={v}" for k, v in sorted(config.extra.items()))]
        return " | ".join(part for part in parts if part)

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return self._endpoint.usage

    async def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents, several requests at a time."""
        batches = [list(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        async with self._endpoint.asked() as endpoint:
            made = await together(endpoint.embed(batch) for batch in batches)
        return np.concatenate([np.asarray(vectors, np.float32) for vectors in made])

    async def query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query."""
        prompt = f"Instruct: {self.instruction}\nQuery:{text}" if self.instruction else text
        async with self._endpoint.asked() as endpoint:
            return np.asarray((await endpoint.embed([prompt]))[0], np.float32)

    async def aclose(self) -> None:
        """Close connections."""
        await self._endpoint.aclose()


class LocalEmbedder:
    """A model of this machine, computed with ``transformers`` (``muarl[train]``).

    ``folder``: its checkpoint. A text's vector is the mean of its last hidden states over its tokens (``pooling``
    "mean"), its first token's (BERT's kind: "first") or its last token's (Qwen3-Embedding's kind: "last").
    ``prefixes``: what goes before a query and before a document, as the model's card says. Weights are read when they
    are first needed.
    """

    def __init__(
        self,
        folder: Path,
        *,
        pooling: str = "mean",
        prefixes: tuple[str, str] = ("", ""),
        max_tokens: int = 512,
        batch: int = 16,
    ) -> None:
        if pooling not in ("mean", "first", "last"):
            raise ConfigError(f"pooling: must be mean, first or last, not {pooling!r}")
        if not (folder / "config.json").is_file():
            raise ConfigError(f"{folder}: no checkpoint there (config.json is missing)")
        require("train", "a local embedding model")
        self.folder, self.pooling, self.prefixes = folder, pooling, prefixes
        self.max_tokens, self.batch = max_tokens, batch
        self._loaded: Any = None

    @property
    def name(self) -> str:
        """The checkpoint's files by name, size and time, and how texts are prepared."""
        files = sorted(f for f in self.folder.iterdir() if f.is_file())
        state = ",".join(f"{f.name}:{f.stat().st_size}:{f.stat().st_mtime_ns}" for f in files)
        return f"local {self.folder.resolve()} {self.pooling} {self.prefixes} {self.max_tokens} {state}"

    async def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents, computed in a thread."""
        return await asyncio.to_thread(self._embed, [self.prefixes[1] + text for text in texts])

    async def query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query."""
        return (await asyncio.to_thread(self._embed, [self.prefixes[0] + text]))[0]

    async def aclose(self) -> None:
        """There are no connections."""

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import torch

        tokenizer, model = self._model()
        rows = []
        for start in range(0, len(texts), self.batch):
            fed = tokenizer(
                list(texts[start : start + self.batch]),
                padding=True, padding_side="right", truncation=True, max_length=self.max_tokens, return_tensors="pt",
            )  # fmt: skip
            with torch.inference_mode():
                hidden = model(input_ids=fed["input_ids"], attention_mask=fed["attention_mask"]).last_hidden_state
            mask = fed["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            if self.pooling == "mean":
                pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)
            else:
                last = fed["attention_mask"].sum(1).clamp(min=1) - 1 if self.pooling == "last" else None
                pooled = hidden[:, 0] if last is None else hidden[torch.arange(len(hidden)), last]
            rows.append(pooled.float().numpy())
        return np.concatenate(rows)

    def _model(self) -> Any:
        if self._loaded is None:
            from transformers import AutoModel, AutoTokenizer

            try:
                tokenizer = AutoTokenizer.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False)
                model = AutoModel.from_pretrained(
                    self.folder, local_files_only=True, trust_remote_code=False, use_safetensors=True
                )
            except (OSError, ValueError) as problem:
                raise ConfigError(f"{self.folder} cannot be read as an embedding model: {problem}") from None
            self._loaded = tokenizer, model.eval()
        return self._loaded


class HashedEmbedder:
    """Embeddings without a model: every word and every three letters within one get a fixed random direction.

    Finds what shares words or parts of words, nothing beyond; for tests, and where no model may be used.
    """

    def __init__(self, length: int = 256) -> None:
        self.length = length

    @property
    def name(self) -> str:
        """The length decides everything."""
        return f"hashed {self.length}"

    async def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents."""
        return np.stack([self._vector(text) for text in texts])

    async def query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query."""
        return self._vector(text)

    async def aclose(self) -> None:
        """There are no connections."""

    def _vector(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self.length, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            around = f" {word} "
            for piece in {word, *(around[i : i + 3] for i in range(len(around) - 2))}:
                number = int.from_bytes(hashlib.blake2b(piece.encode("utf-8", "replace"), digest_size=8).digest())
                vector[number // 2 % self.length] += 1.0 if number % 2 else -1.0
        return vector
