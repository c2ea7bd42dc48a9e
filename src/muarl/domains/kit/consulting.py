"""How a plan reads a rule in the documents that an agent would search for it."""

from __future__ import annotations

import re

from muarl.basics.errors import ConfigError
from muarl.domains.kit.plan import Plan

_FOUND = re.compile(r"^\d+\. (?P<title>.*)\n   ID: (?P<id>.*)\n(?:   Score: .*\n)?   Content: ", re.MULTILINE)


def consult(it: Plan, document: str, query: str, find: str = "") -> str:
    """Search the documents by words, as an agent would, and read one of them.

    ``document``: its id, such as "fees/late". ``query``: the words that are searched for. ``find``: a regular
    expression, of which the first group in the document's text is returned (the whole match where it has no group); the
    whole text where it is empty.

    ConfigError if the search does not show the document, or nothing in it matches: the plan goes by it.
    """
    listing = it.look("KB_search", query=query)
    hits = list(_FOUND.finditer(listing)) if isinstance(listing, str) else []
    ids = [one["id"] for one in hits]
    if document not in ids:
        there = f"it shows {', '.join(ids)}" if ids else "it shows nothing"
        raise ConfigError(
            f"KB_search {query!r} does not show the document {document!r}, which the plan goes by; {there}: take other "
            "words for query, or correct the id"
        )
    number = ids.index(document)
    end = hits[number + 1].start() if number + 1 < len(hits) else len(listing)
    text = listing[hits[number].end() : end].strip()
    if not find:
        return text
    match = re.search(find, text)
    if match is None:
        raise ConfigError(
            f"nothing in the document {document!r} matches {find!r}, by which the plan goes: correct one of them"
        )
    return match[1] if match.re.groups else match[0]
