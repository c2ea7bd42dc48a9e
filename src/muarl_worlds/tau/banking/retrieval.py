"""The bank's policy in each of TAU2's retrieval variants (retrieval/variants.py).

The prompts are the benchmark's own, read from the installed data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from muarl.basics.errors import DataError
from muarl.retrieval.documents import Document, Knowledge
from muarl.retrieval.variants import Variant

ReadPrompt = Callable[[str], str]

_DENSE = {
    "openai": "The `KB_search_dense` tool uses **OpenAI API** with embedding model `text-embedding-3-large` for dense "
    "retrieval.",
    "qwen": "The `KB_search_dense` tool uses **OpenRouter** with embedding model `qwen3-embedding-8b` for dense "
    "retrieval.",
}
"""What alltools' policy says of its search (sierra-research/tau2-bench, MIT licence, Copyright Sierra Research)."""


def policy(chosen: Variant, read: ReadPrompt, knowledge: Callable[[], Knowledge], required: Sequence[str] = ()) -> str:
    """A variant's policy, put together as TAU2 does.

    ``read``: the text of a file of the prompts' folder. ``required``: ids or titles of the documents that the task
    needs, for the variant that inlines them; DataError names one that does not exist.
    """

    def component(found: re.Match[str]) -> str:
        return read(f"components/{found.group(1)}.md")

    text = re.sub(r"\{\{component:(\w+)\}\}", component, read(f"{chosen.prompt}.md"))
    if chosen.inlined == "all":
        text = text.replace("{{full_knowledge_base}}", _laid_out(knowledge().documents))
    elif chosen.inlined == "required":
        find = knowledge().find
        found = [(reference, find(reference)) for reference in required]
        for reference, document in found:
            if document is None:
                raise DataError(f"there is no document {reference!r}")
        documents = [document for _, document in found if document is not None]
        text = text.replace("{{required_documents}}", _laid_out(documents) or "(No documents provided)")
    if "KB_search_dense" in chosen.tools:
        text = text.replace("{{all_tools_dense_instructions}}", _DENSE[str(chosen.ranking)])
    return text


def _laid_out(documents: Sequence[Document]) -> str:
    return "\n\n---\n\n".join(f"## {d.title}\n\n{d.content}" for d in documents)
