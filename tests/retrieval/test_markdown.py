"""Folders of Markdown as they lie on strangers' disks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.basics.errors import DataError
from muarl.retrieval import markdown
from muarl.retrieval.markdown import MarkdownDocument, read_document, read_folder


def one(folder: Path, text: str | bytes, name: str = "page.md") -> MarkdownDocument:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_document(file, folder)


def refused(folder: Path, text: str | bytes, name: str = "page.md") -> str:
    with pytest.raises(DataError) as told:
        one(folder, text, name)
    assert name in str(told.value)
    return str(told.value)


def test_subfolders_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name in (
        "b.md",
        "a/z.markdown",
        "a/Y.MD",
        "c/d/e.md",
        ".git/x.md",
        "c/.draft.md",
        "c/notes.txt",
        "picture.png",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# About {name}")
    found = read_folder(tmp_path).documents
    assert [document.id for document in found] == ["a/Y", "a/z", "b", "c/d/e"]
    assert found[1].title == "About a/z.markdown"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Late returns\n\nPay.", "Late returns"),
        ("intro first\n\n## Late *returns* and `codes` ##\n", "Late returns and codes"),
        ("Late returns\n============\nPay.", "Late returns"),
        ("```\n# no heading\n```\n# Late returns", "Late returns"),
        ("~~~~\n# no\n~~~\n# no\n~~~~\n# Late returns", "Late returns"),
        ("# [Late](x.md) returns &amp; fees", "Late returns & fees"),
        ("# late_return_fee", "late_return_fee"),
        ("#hashtag\nno heading at all", "my page"),
        ("---\ntitle: Fees\n---\n# Late returns", "Fees"),
        ("---\nversion: 2\n---\n# Late returns", "Late returns"),
        ("---\n---\n# Late returns", "Late returns"),
        ("---\nonly a ruler\n\n# Late returns", "Late returns"),
        ("---\ntext between two rulers\n---\n# Late returns", "text between two rulers"),  # as Markdown has it
    ],
)
def test_the_title(text: str, title: str, tmp_path: Path) -> None:
    assert one(tmp_path, text, "my-page.md").title == title


def test_front_matter_is_told_to_who_reads_the_document(tmp_path: Path) -> None:
    found = one(
        tmp_path,
        "---\ntitle: Fees\nversion: 2\neffective_from: 2026-01-01\neffective_until: '2026-06-30'\n"
        "replaces: [fees/2024, fees/2025.md]\ntags: [money]\nauthor: Mia\n---\n\nA day costs $4.\n",
        "fees/now.md",
    )
    assert (found.id, found.version, found.replaces) == ("fees/now", "2", ("fees/2024", "fees/2025"))
    assert (found.effective_from, found.effective_until) == ("2026-01-01", "2026-06-30")
    assert found.ignored == ("tags", "author")
    assert found.content == (
        "# Fees\n\nVersion 2. In force from 2026-01-01 until 2026-06-30. Replaces: fees/2024, fees/2025.\n\n"
        "A day costs $4."
    )


def test_what_has_no_front_matter_stays_as_it_is(tmp_path: Path) -> None:
    text = "# Fees\n\nA day costs $4.\n\n---\n\n<!-- a comment -->  \n* x"
    assert one(tmp_path, text).content == text
    assert one(tmp_path, "---\nid: KB-17\n---\n# Fees\nA day costs $4.").id == "KB-17"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("line", ["\n", "\r\n", "\r"])
def test_encodings_and_line_breaks(encoding: str, line: str, tmp_path: Path) -> None:
    text = "---\ntitle: Gebühr – 5 €\n---\nCafé\n\n日本"
    found = one(tmp_path, text.replace("\n", line).encode(encoding))
    assert (found.title, found.content) == ("Gebühr – 5 €", "# Gebühr – 5 €\n\nCafé\n\n日本")


def test_names_in_either_form_of_unicode_are_the_same(tmp_path: Path) -> None:
    assert one(tmp_path, "text [x](cafe\u0301.md)", "cafe\u0301.md").id == "caf\u00e9"
    assert one(tmp_path, "text [x](cafe\u0301.md)", "cafe\u0301.md").links == ("caf\u00e9.md",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"# Fees\n\nCaf\xe9", "line 3: is not UTF-8 text: save it as UTF-8, such as by `iconv -f WINDOWS-1252"),
        (b"\x89PNG\x00\x00", "line 1: is not UTF-8"),
        (b"text\0text", "zero bytes"),
        ("# Fees".encode("utf-32"), "zero bytes"),
        (b"", "has no text: write some, or remove it"),
        ("---\ntitle: Fees\n---\n\n \n", "has no text below its front matter"),
        ("x" * (markdown.MOST_BYTES + 1), "larger than 128 KiB. Searches show documents whole: split it"),
        ("---\ntitle: Fees: late\n---\nx", "line 2, column 12: not valid YAML"),
        ("---\nversion: 1.10\n---\nx", "version must be text (in quotation marks where it looks like a number)"),
        ("---\ntitle: [a]\n---\nx", "title must be text"),
        ("---\neffective_from: March\n---\nx", "effective_from must be a date such as 2026-03-14, not 'March'"),
        ("---\neffective_from: 2026-03-14\neffective_until: 2025-01-01\n---\nx", "no earlier than effective_from"),
        ("---\nreplaces: {a: b}\n---\nx", "replaces must be the id of a document, or a list of ids"),
        ("---\na: &x [1]\nb: *x\n---\nx", "*x is an alias"),
        ("---\ntitle: !!python/object/apply:os.system ['true']\n---\nx", "is a tag"),
        ("---\ntitle: a\ntitle: b\n---\nx", "occurs twice"),
        ('---\nid: "a\\nb"\n---\nx', "its id must be one line"),
        (f"# {'long ' * 60}", "its title must be one line of at most 200 characters"),
    ],
)
def test_what_is_no_document_is_refused_with_a_remedy(text: str | bytes, said: str, tmp_path: Path) -> None:
    assert said in refused(tmp_path, text)


def test_all_faulty_files_are_told_at_once(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"n{number}.md").write_bytes(b"\xff\xffx")
    (tmp_path / "fine.md").write_text("fine")
    with pytest.raises(DataError) as told:
        read_folder(tmp_path)
    lines = str(told.value).splitlines()
    assert "8 files are no documents" in lines[0] and "n0.md" in lines[1] and lines[-1] == "and 3 more files"


def test_two_documents_with_one_id(tmp_path: Path) -> None:
    (tmp_path / "fees.md").write_text("a")
    (tmp_path / "fees.markdown").write_text("b")
    with pytest.raises(DataError, match=r"fees.markdown and fees.md have the same id, 'fees': rename one"):
        read_folder(tmp_path)


def test_titles_may_be_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text("# Fees\n\nof one kind")
    assert [d.title for d in read_folder(tmp_path).documents] == ["Fees", "Fees"]


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such folder"):
        read_folder(tmp_path / "gone")
    (tmp_path / "fees.docx").write_text("x")
    with pytest.raises(DataError, match="no Markdown file in it, but 1 that end in .docx: make Markdown of them"):
        read_folder(tmp_path)
    with pytest.raises(DataError, match="is a file: name the folder"):
        read_folder(tmp_path / "fees.docx")


def test_nothing_outside_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.md").write_text("secret")
    inside = tmp_path / "documents"
    inside.mkdir()
    (inside / "fine.md").write_text("fine")
    for name, target in (("key.md", "../secret/key.md"), ("more", "../secret")):
        (inside / name).symlink_to(target)
        with pytest.raises(DataError, match="is a link, and links are not followed"):
            read_folder(inside)
        (inside / name).unlink()
    os.mkfifo(inside / "pipe.md")
    with pytest.raises(DataError, match="is no regular file"):
        read_folder(inside)


def test_links(tmp_path: Path) -> None:
    text = (
        '[a](late.md#how) [b](<../rules.markdown>) [c](/top.md "title") [d](my%20page.md) [[Late fees|late]] [[x#y]]\n'
        "[web](https://example.org/a.md) [mail](mailto:a.md) [//](//host/a.md) [here](#part) ![p](p.md) [f](f.pdf)\n"
        "`[no](no.md)`\n\n```\n[no](no.md)\n```\n\n[ref]: ../../ref.md\n"
    )
    found = one(tmp_path, text, "fees/page.md").links
    assert found == (
        "fees/late.md", "rules.markdown", "top.md", "fees/my page.md", "../ref.md", "[[Late fees]]", "[[x]]",
    )  # fmt: skip


@given(st.text(alphabet="[]()`~#-=!<>: \nab.md|*_\\/", max_size=400))
def test_any_text_is_read(text: str) -> None:
    links = markdown._Markdown.of(text, "a/b.md").links
    assert all(not link.startswith("/") for link in links if not link.startswith("[["))


@pytest.mark.parametrize("start", ["", "a", "# a"])
@pytest.mark.parametrize("piece", ["[", "](", "[](", "[[", "`", "<a", "*", "_", " ", "[x]: ", "#", "- ", "\\"])
def test_no_text_takes_long(start: str, piece: str) -> None:
    """Four times the text takes about four times the work. A parser that tries every end from every start would need
    sixteen times as much, and hours for the longest text."""
    short, long = (lines_run(f"{start}{piece * (length // len(piece))}b") for length in (512, 2048))
    assert long < 7 * short


def lines_run(text: str) -> int:
    """How many lines of Python it takes to read a text."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        markdown._Markdown.of(text, "a.md")
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("piece", ["[", "[[", "](", "[[a", "[[a#", "[[a|", "#", "# ", "a:", " "])
def test_no_pattern_takes_long(piece: str) -> None:
    """One that goes back and tries again would take minutes here: its work is no line of Python."""
    text = piece * (markdown.MOST_BYTES // len(piece))
    for pattern in (markdown._WIKI, markdown._HEADING, markdown._ELSEWHERE):
        assert list(pattern.finditer(text)) is not None
