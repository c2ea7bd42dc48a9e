"""The process that counts matches of regular expressions; ``grep.py`` starts it and talks with it.

Run by its path with ``python -I -S``, so it imports nothing but the standard library. A line of JSON in, a line of JSON
out: ``{"keep": NUMBER, "texts": [...]}`` keeps a collection, ``{"drop": NUMBER}`` forgets it; ``{"count": NUMBER,
"pattern": ..., "flags": ..., "seconds": ...}`` answers ``{"counts": [...]}``, ``{"timeout": true}`` or ``{"error":
TEXT}``.
"""

import json
import re
import signal
import sys

MEMORY = 1 << 30
"""Bytes of address space that a pattern may make this process take."""


def _too_long(*_):  # type: ignore[no-untyped-def]
    raise TimeoutError


def _count(texts, asked):  # type: ignore[no-untyped-def]
    # the time of this process, not of the clock: a busy machine changes no answer. Python's matcher looks for signals
    signal.setitimer(signal.ITIMER_VIRTUAL, asked["seconds"])
    try:
        try:
            searched = re.compile(asked["pattern"], asked["flags"])
        except re.error:
            searched = re.compile(re.escape(asked["pattern"]), asked["flags"])
        return {"counts": [len(searched.findall(text)) for text in texts]}
    except TimeoutError:
        return {"timeout": True}
    except MemoryError:
        return {"error": "the pattern takes too much memory"}
    except (RecursionError, OverflowError) as problem:
        return {"error": str(problem)}
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def main() -> None:
    """Answer until the other side closes the pipe."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):  # not every system has such limits; time is limited all the same
        pass
    signal.signal(signal.SIGVTALRM, _too_long)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    texts_by_key = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if "keep" in asked:
            texts_by_key[asked["keep"]] = asked["texts"]
            continue
        if "drop" in asked:
            texts_by_key.pop(asked["drop"], None)
            continue
        sys.stdout.write(json.dumps(_count(texts_by_key[asked["count"]], asked)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
