"""How long a search among documents takes: BM25, regular expressions, embeddings, a shell's grep; and the indexes.

    pip install rank-bm25                      # optional: BM25 is then compared with it in the same run
    python benches/retrieval.py                # documents made from a seed, 50 and 700 of them; under a minute
    python benches/retrieval.py --folder DIR   # the documents of a folder (JSON or Markdown) instead
    python benches/retrieval.py --smoke        # a small run that only shows that it works

Made documents have about 190 words each, drawn from a vocabulary of 4,000 by Zipf's law. Each kind of search is asked
the same queries again and again; the figure is the processor time of one call, the median over the rounds, with the
lowest and highest round in brackets. Regular expressions with operators are matched in a process of their own; its time
is counted, and that of the pipe to it. Embeddings are hashes of words (256 numbers), so their time is that of the
search without a model: of a query that was not asked before, and of one that was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from muarl.retrieval.bm25 import BM25, BM25Search
from muarl.retrieval.documents import Document, Knowledge
from muarl.retrieval.embedders import HashedEmbedder
from muarl.retrieval.embeddings import EmbeddingSearch
from muarl.retrieval.grep import MATCHING, GrepSearch
from muarl.retrieval.search import SearchError
from muarl_worlds.tau.banking.shell.files import files_of
from muarl_worlds.tau.banking.shell.run import Shell

PATTERNS = {"grep, a word": "{}", "grep, two of them": "{}|{}", "grep, in a process": r"\b{}\w*\s+\w+"}
HOSTILE = r"(.*)*$"


def made(count: int, seed: int = 0) -> Knowledge:
    """Documents with words by Zipf's law, in lines."""
    draw = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 10))) for _ in range(4000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    documents = []
    for number in range(count):
        drawn = draw.choices(words, weights, k=draw.randint(120, 260))
        lines = [" ".join(drawn[start : start + 14]) for start in range(0, len(drawn), 14)]
        documents.append(Document(f"doc{number:04}", f"Document {number}", "\n".join(lines)))
    return Knowledge(documents)


def queries(knowledge: Knowledge, count: int, seed: int = 1) -> list[str]:
    """A few words each, of a document."""
    draw = random.Random(seed)
    texts = [d.content.split() for d in knowledge.documents]
    return [" ".join(draw.choices(draw.choice(texts), k=draw.randint(2, 6))) for _ in range(count)]


def processor_time() -> float:
    """Seconds of this process, and of the one that matches regular expressions."""
    process = MATCHING._process
    if process is None or not Path(f"/proc/{process.pid}/schedstat").exists():
        return time.process_time()
    return time.process_time() + int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9


def timed(calls: Sequence[Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Milliseconds of processor time a call: median, lowest and highest round."""
    for call in calls:
        call()
    took = []
    for _ in range(rounds):
        before = processor_time()
        for call in calls:
            call()
        took.append((processor_time() - before) * 1e3 / len(calls))
    return {"median": statistics.median(took), "lowest": min(took), "highest": max(took)}


def once(call: Callable[[], Any]) -> float:
    """Milliseconds of processor time of one call."""
    before = processor_time()
    call()
    return (processor_time() - before) * 1e3


def unlimited(knowledge: Knowledge, pattern: str) -> list[int]:
    """A pattern's matches in each document, counted in this process, where nothing could stop it."""
    wanted = re.compile(pattern, re.IGNORECASE)
    return [len(wanted.findall(document.content)) for document in knowledge.documents]


def bm25_ratio(knowledge: Knowledge, asked: Sequence[str], rounds: int) -> dict[str, float] | None:
    """rank-bm25's time over ours, in turns: of a query and of the index. None where it is not installed."""
    try:
        from rank_bm25 import BM25Okapi
    except ImportError:
        return None
    texts = [d.content.lower().split() for d in knowledge.documents]
    theirs, ours = BM25Okapi(texts), BM25(texts)
    split = [query.lower().split() for query in asked]
    for words in split:
        assert list(theirs.get_scores(words)) == ours.scores(words), "scores differ"
    ratios, indexes = [], []
    for _ in range(rounds):
        other = timed([lambda w=words: theirs.get_scores(w) for words in split], 1)["median"]
        ratios.append(other / timed([lambda w=words: ours.scores(w) for words in split], 1)["median"])
        indexes.append(once(lambda: BM25Okapi(texts)) / once(lambda: BM25(texts)))
    return {"query": statistics.median(ratios), "low": min(ratios), "high": max(ratios),
            "index": statistics.median(indexes)}  # fmt: skip


def measure(knowledge: Knowledge, rounds: int, asked: int) -> dict[str, Any]:
    """All figures of one collection."""
    found: dict[str, Any] = {
        "documents": len(knowledge),
        "characters": sum(len(d.content) for d in knowledge.documents),
    }
    bm25, grep = BM25Search(knowledge), GrepSearch(knowledge)
    wanted = queries(knowledge, asked)
    index = {"BM25": once(lambda: bm25.search(wanted[0]))}
    calls: dict[str, dict[str, float]] = {"BM25": timed([lambda q=q: bm25.search(q) for q in wanted], rounds)}
    for name, pattern in PATTERNS.items():
        few = [pattern.format(*query.split()) for query in wanted[:20]]
        index[name] = once(lambda few=few: grep.search(few[0]))
        calls[name] = timed([lambda p=p: grep.search(p) for p in few], rounds)
    few = [PATTERNS["grep, in a process"].format(*query.split()) for query in wanted[:20]]
    calls["  the same, unlimited"] = timed([lambda p=p: unlimited(knowledge, p) for p in few], rounds)
    embedding = EmbeddingSearch(knowledge, HashedEmbedder())
    index["embeddings"] = once(lambda: embedding.search(wanted[0]))
    fresh = (f"{query} {number}" for number in range(10**6) for query in wanted)
    calls["embeddings, a new query"] = timed([lambda: embedding.search(next(fresh))] * len(wanted), rounds)
    calls["embeddings, a known query"] = timed([lambda q=q: embedding.search(q) for q in wanted], rounds)
    files = files_of(knowledge)
    lines = [f"grep -ril {query.split()[0]} . | head -5" for query in wanted[:10]]
    calls["shell, grep -ril"] = timed([lambda line=line: Shell(files).run(line) for line in lines], rounds)
    begun = time.perf_counter()
    try:
        grep.search(HOSTILE)
        stopped = False
    except SearchError:
        stopped = True
    found |= {"first call": index, "call": calls, "rank-bm25": bm25_ratio(knowledge, wanted, rounds)}
    found["hostile pattern"] = {"stopped": stopped, "wall seconds": time.perf_counter() - begun}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    rounds, asked = (2, 5) if options.smoke else (options.rounds, options.queries)
    sizes = (20,) if options.smoke else (50, 700)
    collections = [Knowledge.read(options.folder)] if options.folder else [made(size) for size in sizes]
    results = [measure(knowledge, rounds, asked) for knowledge in collections]
    for found in results:
        print(f"\n{found['documents']} documents, {found['characters']:,} characters; ms of processor time a call")
        for name, took in found["call"].items():
            print(f"  {name:27} {took['median']:8.3f} ({took['lowest']:.3f} to {took['highest']:.3f})")
        shown = ", ".join(f"{name} {ms:.1f}" for name, ms in found["first call"].items())
        print(f"  first call, with the index: {shown}")
        ratio = found["rank-bm25"]
        print(
            "  rank-bm25 is not installed" if ratio is None else
            f"  rank-bm25 takes {ratio['query']:.1f} times as long a query ({ratio['low']:.1f} to "
            f"{ratio['high']:.1f}), {ratio['index']:.1f} times for the index; same scores"
        )  # fmt: skip
        hostile = found["hostile pattern"]
        print(
            f"  {HOSTILE}: {'stopped' if hostile['stopped'] else 'not stopped'} after {hostile['wall seconds']:.1f} s"
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    MATCHING.close()


if __name__ == "__main__":
    main()
