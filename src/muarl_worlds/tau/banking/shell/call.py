"""What a command gets and gives, and how its options are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from muarl_worlds.tau.banking.shell.files import Files, ShellError
from muarl_worlds.tau.banking.shell.patterns import Clock


@dataclass
class Result:
    """What a command wrote, and its exit status."""

    out: str = ""
    err: str = ""
    code: int = 0


@dataclass(frozen=True)
class CommandCall:
    """A command with its arguments. ``stdin``: None where nothing comes from a pipe or a file; ``run`` runs another
    one (for xargs)."""

    name: str
    args: Sequence[str]
    stdin: str | None
    files: Files
    clock: Clock
    run: Callable[[Sequence[str], str | None], Result]

    def options(self, flags: str, valued: str = "", long: Mapping[str, str] = {}) -> tuple[dict[str, str], list[str]]:
        """Options by letter (with their value, empty for flags), and the other arguments.

        ``flags``: letters without a value; ``valued``: those with one; ``long``: letters of ``--name``. ``-5`` is the
        option "#". ShellError for another one.
        """
        found: dict[str, str] = {}
        rest: list[str] = []
        todo = list(self.args)
        while todo:
            arg = todo.pop(0)
            if arg == "--":
                rest += todo
                break
            if arg.startswith("--"):
                name, equals, value = arg[2:].partition("=")
                letter = long.get(name)
                if letter is None:
                    raise ShellError(f"unrecognized option '{arg}' (not offered here)", 2)
                if letter in valued and not equals:
                    value = self._value(todo, letter)
                self._keep(found, letter, value)
            elif len(arg) > 1 and arg[0] == "-" and arg[1:].isdigit() and "#" in valued:
                found["#"] = arg[1:]
            elif len(arg) > 1 and arg[0] == "-":
                letters = arg[1:]
                while letters:
                    letter, letters = letters[0], letters[1:]
                    if letter in valued:
                        self._keep(found, letter, letters or self._value(todo, letter))
                        break
                    if letter not in flags:
                        raise ShellError(f"invalid option -- '{letter}' (not offered here)", 2)
                    found[letter] = ""
            else:
                rest.append(arg)
        return found, rest

    @staticmethod
    def _value(todo: list[str], letter: str) -> str:
        if not todo:
            raise ShellError(f"option requires an argument -- '{letter}'", 2)
        return todo.pop(0)

    @staticmethod
    def _keep(found: dict[str, str], letter: str, value: str) -> None:
        found[letter] = f"{found[letter]}\n{value}" if letter in found and letter == "e" else value

    def inputs(self, names: Sequence[str]) -> Iterator[tuple[str, str | ShellError]]:
        """The texts that a command reads, by name: files, "-" for what comes by the pipe, which is also read where no
        file is named. What cannot be read is an error in place of the text."""
        for name in names or ("-",):
            if name == "-":
                yield name, self.stdin or ""
                continue
            try:
                yield name, self.files.read(name)
            except ShellError as problem:
                yield name, problem

    def number(self, text: str, what: str = "number") -> int:
        """A whole number. ShellError for what is none."""
        try:
            return int(text[:20])
        except ValueError:
            raise ShellError(f"invalid {what}: '{text}'") from None


def each(call: CommandCall, names: Sequence[str], show: Callable[[str, str], str]) -> Result:
    """What ``show`` makes of each input (name, text), one after the other, and what could not be read."""
    result = Result()
    for name, text in call.inputs(names):
        if isinstance(text, ShellError):
            result.err += f"{call.name}: {text}\n"
            result.code = 1
        else:
            result.out += show(name, text)
    return result
