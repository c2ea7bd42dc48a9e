"""Commands that change texts on their way or in files: sed, tee, touch, rm, cp, mv, mkdir, xargs."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import regex

from muarl_worlds.tau.banking.shell.call import CommandCall, Result, each
from muarl_worlds.tau.banking.shell.files import ShellError, lines_of
from muarl_worlds.tau.banking.shell.patterns import compiled
from muarl_worlds.tau.banking.shell.reading import ended_as


@dataclass(frozen=True)
class _Step:
    """A command of a sed script: its ends (a line's number, "$" or a pattern), its letter, and of ``s`` the rest."""

    ends: tuple[int | str | regex.Pattern[str], ...]
    negated: bool
    letter: str
    pattern: regex.Pattern[str] | None = None
    new: str = ""
    flags: str = ""


def sed(call: CommandCall) -> Result:
    """Prints, deletes and replaces: -n, -E, -i, ``Np``, ``A,Bp``, ``/re/p``, ``d``, ``q``, ``s/old/new/flags``."""
    options, rest = call.options("nEri", "e", {"quiet": "n", "in-place": "i", "regexp-extended": "E"})
    if "e" not in options and not rest:
        raise ShellError("usage: sed [OPTION]... {script} [input-file]...")
    script = options["e"] if "e" in options else rest.pop(0)
    steps = _script(script, "extended" if {"E", "r"} & set(options) else "basic")
    edit: Callable[[str], str] = lambda text: _edited(call, steps, text, quiet="n" in options)  # noqa: E731
    if "i" not in options:
        parts: list[str] = []

        def keep(name: str, text: str) -> str:
            parts.append(text)
            return ""

        texts = each(call, rest, keep)
        texts.out = "".join(one if one.endswith("\n") or not one else f"{one}\n" for one in parts[:-1])
        texts.out += parts[-1] if parts else ""
        texts.out = edit(texts.out)
        return texts

    def replace(name: str, text: str) -> str:
        call.files.write(name, edit(text))
        return ""

    return each(call, rest, replace)


def _script(script: str, kind: str) -> list[_Step]:
    steps, rest = [], script.strip()
    while rest:
        ends, rest = _ends(rest, kind)
        negated = rest.startswith("!")
        rest = rest.lstrip("! ")
        letter, rest = rest[:1], rest[1:]
        if letter == "s":
            found, rest = _substitution(rest)
            old, new, flags = found
            pattern = compiled(old, kind, ignore_case=bool({"i", "I"} & set(flags)))
            steps.append(_Step(ends, negated, "s", pattern, new, flags))
        elif letter and letter in "pdq=":
            steps.append(_Step(ends, negated, letter))
        else:
            raise ShellError(f"-e expression #1: command '{letter}' is not offered here; p, d, q, = and s are")
        rest = rest.lstrip(" ;\n")
    return steps


def _ends(rest: str, kind: str) -> tuple[tuple[int | str | regex.Pattern[str], ...], str]:
    found: list[int | str | regex.Pattern[str]] = []
    while len(found) < 2:
        number = re.match(r"\d{1,9}|\$", rest)
        if number is not None:
            found.append("$" if number.group() == "$" else int(number.group()))
            rest = rest[number.end() :]
        elif rest.startswith("/"):
            pieces = _split(rest[1:], "/", 1)
            found.append(compiled(pieces[0], kind))
            rest = pieces[1]
        else:
            break
        if not rest.startswith(","):
            break
        rest = rest[1:].lstrip()
    return tuple(found), rest.lstrip()


def _substitution(rest: str) -> tuple[tuple[str, str, str], str]:
    if not rest:
        raise ShellError("-e expression #1: unterminated `s' command")
    old, new, after = _split(rest[1:], rest[0], 2)
    flags = re.match(r"[gpiI\d]*", after)
    assert flags is not None
    return (old, new, flags.group()), after[flags.end() :]


def _split(text: str, by: str, times: int) -> list[str]:
    """Cut at a character that no backslash precedes."""
    pieces, current, at = list[str](), "", 0
    while at < len(text) and len(pieces) < times:
        if text[at] == "\\" and at + 1 < len(text):
            current += text[at + 1] if text[at + 1] == by and by not in "|()+?{}" else text[at : at + 2]
            at += 2
        elif text[at] == by:
            pieces.append(current)
            current, at = "", at + 1
        else:
            current, at = current + text[at], at + 1
    if len(pieces) < times:
        raise ShellError("-e expression #1: unterminated address or `s' command")
    return [*pieces, text[at:]]


def _edited(call: CommandCall, steps: Sequence[_Step], text: str, *, quiet: bool) -> str:
    lines, out, active = list(lines_of(text)), list[str](), dict[int, bool]()
    deleted = stop = False
    for number, given in enumerate(lines, 1):
        line, deleted, stop = given, False, False
        for place, step in enumerate(steps):
            if _applies(call, step, place, number, len(lines), line, active) == step.negated:
                continue
            if step.letter == "d":
                deleted = True
                break
            if step.letter == "q":
                stop = True
                break
            if step.letter == "s":
                line, changed = _replaced(call, step, line)
                if changed and "p" in step.flags:
                    out.append(line)
            else:
                out.append(str(number) if step.letter == "=" else line)
        if not quiet and not deleted:
            out.append(line)
        if stop:
            break
    whole = not deleted and not quiet and not stop
    made = "".join(f"{line}\n" for line in out)
    return ended_as(text, made) if whole or (out and lines and out[-1] == lines[-1]) else made


def _applies(
    call: CommandCall, step: _Step, place: int, number: int, last: int, line: str, active: dict[int, bool]
) -> bool:
    def at(end: int | str | regex.Pattern[str]) -> bool:
        if isinstance(end, (int, str)):
            return number == (last if end == "$" else end)
        return end.search(line, timeout=call.clock.left) is not None

    if not step.ends:
        return True
    if len(step.ends) == 1:
        return at(step.ends[0])
    first, second = step.ends
    if active.get(place):
        active[place] = not at(second) and not (isinstance(second, int) and number > second)
        return not (isinstance(second, int) and number > second)
    if at(first):
        active[place] = not (isinstance(second, int) and second <= number)
        return True
    return False


def _replaced(call: CommandCall, step: _Step, line: str) -> tuple[str, bool]:
    assert step.pattern is not None
    only = int(re.sub(r"\D", "", step.flags) or 0)
    out, at, count = "", 0, 0
    for found in step.pattern.finditer(line, timeout=call.clock.left):
        count += 1
        if only and count < only:
            continue
        new = re.sub(
            r"\\(.)|&",
            lambda m: found.group() if m[0] == "&" else _reference(found, m[1]),  # noqa: B023
            step.new,
            flags=re.DOTALL,
        )
        out += line[at : found.start()] + new
        at = found.end()
        if "g" not in step.flags:
            break
    return (out + line[at:], True) if at or out else (line, False)


def _reference(found: regex.Match[str], c: str) -> str:
    if c.isdigit():
        return (found.group(int(c)) or "") if int(c) <= found.re.groups else ""
    return {"n": "\n", "t": "\t"}.get(c, c)


def tee(call: CommandCall) -> Result:
    """Passes on what comes, and writes it to files: -a appends."""
    options, names = call.options("a")
    text = call.stdin or ""
    for name in names:
        before = call.files.read(name) if "a" in options and call.files.plain(name) in call.files.texts else ""
        call.files.write(name, before + text)
    return Result(text)


def touch(call: CommandCall) -> Result:
    """Makes empty files."""
    for name in call.options("c")[1]:
        call.files.write(name, call.files.texts.get(call.files.plain(name), ""))
    return Result()


def mkdir(call: CommandCall) -> Result:
    """Makes folders."""
    for name in call.options("p")[1]:
        call.files.make_folder(name)
    return Result()


def rm(call: CommandCall) -> Result:
    """Removes files, with -r folders."""
    options, names = call.options("rRf")
    for name in names:
        if call.files.is_folder(name):
            if not {"r", "R"} & set(options):
                raise ShellError(f"cannot remove '{name}': Is a directory")
        elif "f" not in options:
            call.files.read(name)
        call.files.remove(name)
    return Result()


def copy(call: CommandCall) -> Result:
    """cp and mv: files to a file or into a folder."""
    _, names = call.options("rRfapnv")
    if len(names) < 2:
        raise ShellError("missing destination file operand")
    *sources, target = names
    for source in sources:
        text = call.files.read(source)
        into = posixpath.join(target, posixpath.basename(source)) if call.files.is_folder(target) else target
        call.files.write(into, text)
        if call.name == "mv" and call.files.plain(into) != call.files.plain(source):
            call.files.remove(source)
    return Result()


def xargs(call: CommandCall) -> Result:
    """Runs a command with the words that come: -n N at a time, -I MARK for each line."""
    args, options = list(call.args), dict[str, str]()
    while args and args[0].startswith("-"):
        option = args.pop(0)
        if option in ("-0", "-r", "-t"):
            continue
        if option[:2] not in ("-n", "-I", "-d", "-L") or (len(option) == 2 and not args):
            raise ShellError(f"option {option} is not offered here")
        options[option[1]] = option[2:] or args.pop(0)
    command, text = args or ["echo"], call.stdin or ""
    if "I" in options:
        batches = [[part.replace(options["I"], line) for part in command] for line in lines_of(text)]
    else:
        words = [w for w in text.split("\n") if w] if "d" in options or "\0" in text else _words(text)
        size = call.number(options.get("n") or options.get("L") or "0") or max(1, len(words))
        batches = [[*command, *words[start : start + size]] for start in range(0, max(1, len(words)), size)]
    result = Result()
    for batch in batches[:10_000]:
        call.clock.check()
        one = call.run(batch, "")
        result.out, result.err, result.code = result.out + one.out, result.err + one.err, one.code or result.code
    return result


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
