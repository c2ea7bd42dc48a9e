"""Documents in a folder of Markdown files, which may begin with front matter.

Nothing in a file is run or fetched: its text is read, the front matter is bounded YAML (``muarl.basics.untrusted``).
"""

from __future__ import annotations

import codecs
import itertools
import os
import posixpath
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from muarl.basics.errors import DataError
from muarl.basics.untrusted import parse_yaml
from muarl.retrieval.documents import Document, Knowledge

SUFFIXES = (".md", ".markdown")
MOST_BYTES = 128 << 10
"""Bytes of one document. A search shows documents whole, and several at once."""
MOST_DOCUMENTS = 10_000
FRONT_MATTER = 100
"""Lines in which front matter must end; else the first line is a ruler of the text."""
KEYS = ("id", "title", "version", "effective_from", "effective_until", "replaces")
"""What front matter may say; other keys are left alone."""
LONGEST_HEADING = 1000
"""Characters of a heading, with its marks."""
SHOWN = 5
"""Faulty files that one message tells of."""

_PARSER = MarkdownIt("commonmark")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(\S.*?)(?:[ \t]+#+)?[ \t]*")
_WIKI = re.compile(r"(?<!!)\[\[([^\[\]\n|#]{1,200})(?:#[^\[\]\n|]{0,200})?(?:\|[^\[\]\n]{0,200})?\]\]")
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_OTHER_TEXTS = (".txt", ".rst", ".adoc", ".docx", ".doc", ".odt", ".pdf", ".html", ".htm", ".rtf")


@dataclass(frozen=True)
class MarkdownDocument(Document):
    """A document from a Markdown file."""

    file: str = ""
    """Its path within the folder."""
    version: str = ""
    """What its front matter says, and empty where it says nothing; ``content`` tells it to who reads it."""
    effective_from: str = ""
    """A date such as "2026-03-14", as ``version`` from the front matter."""
    effective_until: str = ""
    """A date, as ``effective_from``."""
    replaces: tuple[str, ...] = ()
    """Ids of the documents that it replaces."""
    links: tuple[str, ...] = ()
    """The documents that it links to, each a path within the folder, or a name in double brackets: "[[Late fees]]"."""
    ignored: tuple[str, ...] = ()
    """Other keys of the front matter."""


def read_folder(folder: Path) -> Knowledge:
    """All Markdown files of a folder and its subfolders as documents, in the order of their paths.

    A document's id is its path without the suffix, such as "fees/late-return", or the ``id`` of its front matter; its
    title is the front matter's, else the first heading, else made of the file's name. Hidden files and folders, and
    files of other kinds, are left out. DataError names the files that are no documents, and what to do about each.
    """
    files = list(_files(folder))
    if not files:
        raise DataError(f"{folder}: there is no Markdown file in it{_others(folder)}")
    if len(files) > MOST_DOCUMENTS:
        raise DataError(
            f"{folder}: has {len(files)} Markdown files, and {MOST_DOCUMENTS} are the most: name a subfolder"
        )
    documents, problems = [], []
    for file in files:
        try:
            documents.append(read_document(file, folder))
        except DataError as problem:
            problems.append(str(problem))
    if len(problems) > 1:
        more = [f"and {len(problems) - SHOWN} more files"] * (len(problems) > SHOWN)
        raise DataError("\n".join([f"{folder}: {len(problems)} files are no documents:", *problems[:SHOWN], *more]))
    if problems:
        raise DataError(problems[0])
    for one, times in Counter(document.id for document in documents).items():
        if times > 1:
            named = " and ".join(document.file for document in documents if document.id == one)
            raise DataError(f"{folder}: {named} have the same id, {one!r}: rename one, or give it another id")
    return Knowledge(documents)


def read_document(file: Path, folder: Path) -> MarkdownDocument:
    """One file of a folder as a document. DataError names the file, the line where it is in one, and the remedy."""
    path = unicodedata.normalize("NFC", file.relative_to(folder).as_posix())
    text = _text(file)
    front_matter, body, first = _front_matter(file, text)
    markdown = _Markdown.of(body, path)
    name = posixpath.splitext(path)[0]
    named = front_matter.get("title")
    title = (_plain(_PARSER.parseInline(named)[0]) if named else markdown.heading) or posixpath.basename(name).replace(
        "-", " "
    ).replace("_", " ")
    if not body.strip():
        raise DataError(f"{file}: has no text{' below its front matter' if first else ''}: write some, or remove it")
    document = MarkdownDocument(
        front_matter.get("id") or name,
        title,
        _content(body.strip("\n").rstrip(), title, markdown.heading, front_matter),
        path,
        front_matter.get("version", ""),
        front_matter.get("effective_from", ""),
        front_matter.get("effective_until", ""),
        tuple(front_matter.get("replaces", ())),
        markdown.links,
        tuple(front_matter.get("ignored", ())),
    )
    for what, value in (("id", document.id), ("title", document.title)):
        if len(value) > 200 or not value.isprintable():
            raise DataError(f"{file}: its {what} must be one line of at most 200 characters, not {value[:60]!r}")
    return document


# files


def _files(folder: Path) -> Iterator[Path]:
    """The Markdown files of a folder, by path. DataError for one that cannot be read, or would lead elsewhere."""

    def unreadable(problem: OSError) -> None:
        raise DataError(f"{problem.filename}: cannot be read: {problem.strerror or problem}")

    if not folder.is_dir():
        what = "is a file: name the folder that it lies in" if folder.exists() else "there is no such folder"
        raise DataError(f"{folder}: {what}")
    paths = []
    for place, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        named = [name for name in files if not name.startswith(".") and name.lower().endswith(SUFFIXES)]
        for name in [*named, *(name for name in folders if Path(place, name).is_symlink())]:
            path = Path(place, name)
            try:
                name.encode()
                mode = path.lstat().st_mode
            except UnicodeEncodeError:
                raise DataError(f"{os.fsencode(path)!r}: its name is no UTF-8 text: rename it") from None
            except OSError as problem:
                raise DataError(f"{path}: cannot be read: {problem.strerror or problem}") from None
            if stat.S_ISLNK(mode):
                raise DataError(f"{path}: is a link, and links are not followed: put what it leads to in its place")
            if not stat.S_ISREG(mode):
                raise DataError(f"{path}: is no regular file: remove it")
            paths.append(path)
    yield from sorted(paths, key=lambda path: path.relative_to(folder).as_posix())


def _others(folder: Path) -> str:
    """The end of a message about a folder without Markdown: what could be made into it."""
    kinds = Counter(path.suffix.lower() for path in folder.rglob("*") if path.suffix.lower() in _OTHER_TEXTS)
    if not kinds:
        return f": put some there, with names that end in {' or '.join(SUFFIXES)}"
    kind, many = kinds.most_common(1)[0]
    return f", but {many} that end in {kind}: make Markdown of them first (pandoc does, for most kinds)"


def _text(file: Path) -> str:
    """A file's text, with plain line breaks."""
    try:
        with open(file, "rb") as opened:
            raw = opened.read(MOST_BYTES + 1)
    except OSError as problem:
        raise DataError(f"{file}: cannot be read: {problem.strerror or problem}") from None
    if len(raw) > MOST_BYTES:
        raise DataError(
            f"{file}: is larger than {MOST_BYTES >> 10} KiB. Searches show documents whole: split it, at its headings"
        )
    wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = raw.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw[: problem.start].count(b"\n") + 1
        raise DataError(
            f"{file}, line {line}: is not UTF-8 text: save it as UTF-8, such as by "
            f"`iconv -f WINDOWS-1252 -t UTF-8 {file.name}`"
        ) from None
    if "\0" in text:
        raise DataError(f"{file}: is no text, as it has zero bytes: save it as UTF-8, or remove it")
    return text.replace("\r\n", "\n").replace("\r", "\n")


# front matter


def _front_matter(file: Path, text: str) -> tuple[dict[str, Any], str, int]:
    """What the front matter says, the text below it, and how many lines it takes; 0 where there is none."""
    lines = text.split("\n")
    end = 0
    if lines[0].rstrip() == "---":
        ends = (n for n, line in enumerate(lines[1:FRONT_MATTER], 1) if line.rstrip() in ("---", "..."))
        end = next(ends, 0)
    if not end:
        return {}, text, 0
    try:
        front_matter = parse_yaml("\n".join(["", *lines[1:end]]))  # so that lines are counted as the file's
    except ValueError as problem:
        raise DataError(
            f"{file}: its front matter: {problem}. Text with a colon, a # or a quotation mark in it needs quotation "
            'marks around it: title: "Fees: late returns"'
        ) from None
    body = "\n".join(lines[end + 1 :])
    if front_matter is None:
        return {}, body, end + 1
    if not isinstance(front_matter, Mapping):
        return {}, text, 0  # text between two rulers
    return _checked(file, front_matter), body, end + 1


def _checked(file: Path, front_matter: Mapping[Any, Any]) -> dict[str, Any]:
    """Front matter as texts, by key. DataError names the key."""

    def wrong(key: str, what: str) -> DataError:
        return DataError(f"{file}: its front matter: {key} must be {what}, not {front_matter[key]!r:.60}")

    out: dict[str, Any] = {"ignored": [str(key) for key in front_matter if key not in KEYS]}
    for key in ("id", "title", "version"):
        value = front_matter.get(key)
        if isinstance(value, bool) or not isinstance(value, (str, int, type(None))):
            raise wrong(key, "text (in quotation marks where it looks like a number)")
        out[key] = "" if value is None else unicodedata.normalize("NFC", str(value).strip())
    for key in ("effective_from", "effective_until"):
        value = front_matter.get(key)
        try:
            out[key] = "" if value is None else date.fromisoformat(value).isoformat()
        except (TypeError, ValueError):
            raise wrong(key, "a date such as 2026-03-14") from None
    if out["effective_until"] and out["effective_until"] < out["effective_from"]:
        raise wrong("effective_until", f"no earlier than effective_from, {out['effective_from']}")
    replaced = front_matter.get("replaces")
    several = [] if replaced is None else replaced if isinstance(replaced, list) else [replaced]
    if not all(isinstance(one, str) and one.strip() for one in several):
        raise wrong("replaces", "the id of a document, or a list of ids")
    named = (posixpath.splitext(one) for one in several)
    ids = [name if end.lower() in SUFFIXES else name + end for name, end in named]
    out["replaces"] = [unicodedata.normalize("NFC", one.strip()) for one in ids]
    return out


def _content(body: str, title: str, heading: str, front_matter: Mapping[str, Any]) -> str:
    """The text as agents read it: with its title, and with what the front matter says of its validity."""
    first, until = front_matter.get("effective_from"), front_matter.get("effective_until")
    said = [f"Version {front_matter['version']}."] if front_matter.get("version") else []
    if first or until:
        said.append(f"In force{f' from {first}' if first else ''}{f' until {until}' if until else ''}.")
    if front_matter.get("replaces"):
        said.append(f"Replaces: {', '.join(front_matter['replaces'])}.")
    if heading != title:
        body = f"# {title}\n\n{body}"
    if not said:
        return body
    top, _, rest = body.partition("\n")
    if not _HEADING.fullmatch(top):
        return f"{' '.join(said)}\n\n{body}"
    return f"{top}\n\n{' '.join(said)}\n\n{rest.lstrip()}".rstrip()


# text


@dataclass(frozen=True)
class _Markdown:
    """What the text of a document shows."""

    heading: str
    """Its first heading, without marks; empty if there is none."""
    links: tuple[str, ...]
    """The documents that it links to, outside of code."""

    @classmethod
    def of(cls, text: str, path: str) -> _Markdown:
        """``path``: of the file within its folder."""
        environment: dict[str, Any] = {}
        tokens = _PARSER.parse(text, environment)
        headings = (inline for opened, inline in itertools.pairwise(tokens) if opened.type == "heading_open")
        heading = next((_plain(one) for one in headings if len(one.content) <= LONGEST_HEADING), "")
        pieces = [piece for token in tokens for piece in token.children or ()]
        targets = [str(piece.attrGet("href")) for piece in pieces if piece.type == "link_open"]
        targets += [reference["href"] for reference in environment.get("references", {}).values()]
        files = [_target(one, path) for one in targets if not _ELSEWHERE.match(one)]
        words = "\n".join(piece.content for piece in pieces if piece.type == "text")
        names = [f"[[{' '.join(match[1].split())}]]" for match in _WIKI.finditer(words)]
        return cls(heading, tuple(dict.fromkeys([*(f for f in files if f.lower().endswith(SUFFIXES)), *names])))


def _plain(inline: Token) -> str:
    """A line without marks."""
    pieces = (piece.content if piece.type in ("text", "code_inline", "image") else " " * piece.type.endswith("break")
             for piece in inline.children or ())  # fmt: skip
    return unicodedata.normalize("NFC", " ".join("".join(pieces).split()))


def _target(link: str, path: str) -> str:
    """The file that a link means, as a path within the folder."""
    bare = unicodedata.normalize("NFC", unquote(re.split(r"[#?]", link)[0]))
    return posixpath.normpath(
        bare.lstrip("/") if bare.startswith("/") else posixpath.join(posixpath.dirname(path), bare)
    )
