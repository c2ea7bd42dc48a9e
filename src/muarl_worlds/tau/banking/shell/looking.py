"""Commands that look for files and for text in them: ls, find, grep."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from muarl_worlds.tau.banking.shell.call import CommandCall, Result
from muarl_worlds.tau.banking.shell.files import ShellError, lines_of
from muarl_worlds.tau.banking.shell.patterns import compiled

_WHOSE = "kb_user  kb_group"
_WHEN = "Jan  1 00:00"
"""TAU2's words in place of a machine's."""


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def ls(call: CommandCall) -> Result:
    """Names: -l with sizes, -S by size, -r backwards, -d folders themselves."""
    options, names = call.options("lahA1RtSrdFgGon", long={"all": "a", "human-readable": "h", "reverse": "r"})
    result, files, blocks = Result(), [], list[tuple[str, list[str]]]()
    for name in names or ["."]:
        if call.files.is_folder(name) and "d" not in options:
            found = call.files.listed(name)
            plain = call.files.plain(name)
            blocks.append((name, [posixpath.join(plain, one) for one in found]))
        elif call.files.is_folder(name) or call.files.plain(name) in call.files.texts:
            files.append(name)
        else:
            result.err += f"ls: cannot access '{name}': No such file or directory\n"
            result.code = 2
    parts = [_listed(call, options, files, files)] if files else []
    for name, paths in blocks:
        shown = [posixpath.basename(path) for path in paths]
        title = f"{name}:\n" if len(blocks) + len(files) > 1 else ""
        parts.append(title + _listed(call, options, paths, shown, total=True))
    result.out = "\n".join(parts)
    return result


def _listed(
    call: CommandCall, options: dict[str, str], paths: Sequence[str], shown: Sequence[str], *, total: bool = False
) -> str:
    rows = [
        (name, 4096 if call.files.is_folder(path) else _size(call.files.read(path)), call.files.is_folder(path))
        for path, name in zip(paths, shown, strict=True)
        if "a" in options or "A" in options or not name.startswith(".") or not total
    ]
    rows.sort(key=(lambda row: (-row[1], row[0])) if "S" in options else (lambda row: row[0]), reverse="r" in options)
    if "l" not in options:
        return "".join(f"{name}\n" for name, _, _ in rows)
    write = "w" if call.files.writes else "-"
    dots = [("." if n == 0 else "..", 4096, True) for n in range(2)] if total and "a" in options else []
    head = f"total {sum(-(-size // 4096) * 4 for _, size, _ in rows)}\n" if total else ""
    return head + "".join(
        f"{'d' if folder else '-'}r{write}{'x' if folder else '-'}r--r-- 1 {_WHOSE}  {size} {_WHEN} {name}\n"
        for name, size, folder in [*dots, *rows]
    )


def find(call: CommandCall) -> Result:
    """Paths below folders: -name, -iname, -path, -type, -maxdepth, -not."""
    args, places, tests = list(call.args), list[str](), list[tuple[bool, str, str]]()
    while args and not args[0].startswith(("-", "!", "(")):
        places.append(args.pop(0))
    deepest, negated = 1 << 30, False
    while args:
        option = args.pop(0)
        if option in ("-not", "!"):
            negated = True
            continue
        if option in ("-print", "-print0"):
            continue
        if option not in ("-name", "-iname", "-path", "-ipath", "-type", "-maxdepth") or not args:
            raise ShellError(f"{option}: not offered here, or without its value")
        value = args.pop(0)
        if option == "-maxdepth":
            deepest = call.number(value)
        else:
            tests.append((negated, option, value))
        negated = False
    result = Result()
    for place in places or ["."]:
        plain = call.files.plain(place)
        if not call.files.is_folder(place):
            if plain in call.files.texts:
                result.out += f"{place}\n" if _passes(place, False, tests) else ""
            else:
                result.err += f"find: '{place}': No such file or directory\n"
                result.code = 1
            continue
        for path, folder in _tree(call, plain):
            below = path[len(plain) :].lstrip("/") if plain else path
            if (below.count("/") + 1 if below else 0) > deepest:
                continue
            full = f"{place.rstrip('/')}/{below}" if below else place
            if _passes(full, folder, tests):
                result.out += f"{full}\n"
    return result


def _tree(call: CommandCall, plain: str) -> Iterator[tuple[str, bool]]:
    """Everything below a folder, as (path, whether it is one), and itself."""
    folders = {plain}
    for name in call.files.below(plain):
        parts = name.split("/")[:-1]
        folders |= {"/".join(parts[: n + 1]) for n in range(len(parts)) if len("/".join(parts[: n + 1])) > len(plain)}
    yield from sorted([*((f, True) for f in folders), *((f, False) for f in call.files.below(plain))])


def _passes(path: str, folder: bool, tests: Sequence[tuple[bool, str, str]]) -> bool:
    for negated, option, value in tests:
        if option == "-type":
            found = value == ("d" if folder else "f")
        else:
            of = path if option.endswith("path") else posixpath.basename(path)
            low = option.startswith("-i")
            found = fnmatch.fnmatchcase(of.lower() if low else of, value.lower() if low else value)
        if found == negated:
            return False
    return True


_LONG = {
    "ignore-case": "i", "recursive": "r", "line-number": "n", "files-with-matches": "l", "files-without-match": "L",
    "count": "c", "only-matching": "o", "extended-regexp": "E", "fixed-strings": "F", "perl-regexp": "P",
    "basic-regexp": "G", "word-regexp": "w", "line-regexp": "x", "invert-match": "v", "no-filename": "h",
    "with-filename": "H", "no-messages": "s", "quiet": "q", "silent": "q", "regexp": "e", "max-count": "m",
    "after-context": "A", "before-context": "B", "context": "C", "include": "+", "exclude": "!", "color": "%",
    "colour": "%",
}  # fmt: skip


@dataclass(frozen=True)
class _Asked:
    options: dict[str, str]
    pattern: regex.Pattern[str]
    before: int
    after: int
    named: bool


def grep(call: CommandCall) -> Result:
    """Lines that match a pattern, with GNU grep's usual options."""
    options, rest = call.options("irRnlLcoEFPGwxvhHsqaI", "emABC#+!%", _LONG)
    if "e" not in options and not rest:
        raise ShellError("usage: grep [OPTION]... PATTERNS [FILE]...", 2)
    text = options["e"] if "e" in options else rest.pop(0)
    kind = next((k for o, k in (("F", "fixed"), ("P", "perl"), ("E", "extended")) if o in options), "basic")
    kind = "extended" if call.name == "egrep" else "fixed" if call.name == "fgrep" else kind
    whole = "x" if "x" in options else "w" if "w" in options else ""
    pattern = compiled(text, kind, ignore_case="i" in options, whole=whole)
    recursive = bool({"r", "R"} & set(options))
    around = options.get("C") or options.get("#") or "0"
    before, after = (call.number(options.get(o) or around, "context length") for o in "BA")
    paths = _paths(call, rest or (["."] if recursive and call.stdin is None else ["-"]), recursive, options, not rest)
    named = "H" in options or ("h" not in options and (recursive or len(rest) > 1))
    asked = _Asked(options, pattern, max(0, before), max(0, after), named)
    result, any_match, parts = Result(), False, list[str]()
    for shown, path in paths:
        try:
            if path == "-":
                content = call.stdin or ""
            elif isinstance(path, ShellError):
                raise path
            else:
                content = call.files.read(path)
        except ShellError as problem:
            result.err += "" if "s" in options else f"grep: {problem}\n"
            result.code = 2
            continue
        said, matched = _grep_text(call, asked, "(standard input)" if path == "-" else shown, content)
        any_match = any_match or matched
        if said:
            parts.append(said)
    separated = before + after > 0 and not {"l", "L", "c", "q"} & set(options)
    result.out = ("--\n" if separated else "").join(parts)
    result.code = result.code or (0 if any_match else 1)
    return result


def _paths(
    call: CommandCall, names: Sequence[str], recursive: bool, options: dict[str, str], unnamed: bool
) -> Iterator[tuple[str, str | ShellError]]:
    """What is to be searched, as (name shown, path)."""
    for name in names:
        if name == "-" or not call.files.is_folder(name):
            yield name, name
        elif not recursive:
            yield name, ShellError(f"{name}: Is a directory")
        else:
            skip = len(plain) + 1 if (plain := call.files.plain(name)) else 0
            for path in call.files.below(name):
                base = posixpath.basename(path)
                if "+" in options and not fnmatch.fnmatchcase(base, options["+"]):
                    continue
                if "!" in options and fnmatch.fnmatchcase(base, options["!"]):
                    continue
                yield (path if unnamed else f"{name.rstrip('/')}/{path[skip:]}"), path


def _grep_text(call: CommandCall, asked: _Asked, name: str, content: str) -> tuple[str, bool]:
    """What grep says of one text, and whether anything matched."""
    options, search = asked.options, asked.pattern.search
    inverted = "v" in options
    if not inverted and search(content, timeout=call.clock.left) is None:
        hits: list[int] = []  # what no part of the text matches, no line does
        lines: list[str] = []
    else:
        lines = list(lines_of(content))
        most = call.number(options["m"]) if "m" in options else len(lines)
        hits = []
        for number, line in enumerate(lines):
            if len(hits) >= most:
                break
            if (search(line, timeout=call.clock.left) is None) == inverted:
                hits.append(number)
    if "q" in options:
        return "", bool(hits)
    if "l" in options or "L" in options:
        return (f"{name}\n" if bool(hits) == ("l" in options) else ""), bool(hits)
    before = f"{name}:" if asked.named else ""
    if "c" in options:
        return f"{before}{len(hits)}\n", bool(hits)
    return "".join(_lines(call, asked, name, lines, hits)), bool(hits)


def _lines(call: CommandCall, asked: _Asked, name: str, lines: Sequence[str], hits: Sequence[int]) -> Iterator[str]:
    matched, last = set(hits), -1
    for hit in hits:
        first = max(last + 1, hit - asked.before)
        if last >= 0 and first > last + 1 and asked.before + asked.after:
            yield "--\n"
        for number in range(first, min(len(lines), hit + asked.after + 1)):
            if number <= last:
                continue
            last = number
            sign = ":" if number in matched else "-"
            label = (f"{name}{sign}" if asked.named else "") + (f"{number + 1}{sign}" if "n" in asked.options else "")
            if "o" not in asked.options:
                yield f"{label}{lines[number]}\n"
            elif number in matched:
                for found in asked.pattern.finditer(lines[number], timeout=call.clock.left):
                    if found.group():
                        yield f"{label}{found.group()}\n"
