"""What a tool's docstring says of the tool and of each parameter.

Read are Google style (an ``Args:`` section), plain ``name: text`` lines, NumPy style (``Parameters`` over dashes) and
fields (``:param name: text``, ``@param name: text``).
"""

from __future__ import annotations

import inspect
import re

_SECTIONS = ("args:", "arguments:", "parameters:", "returns:", "raises:", "yields:", "examples:", "example:", "note:")
_FIELD = re.compile(r"[:@](?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)")
_OTHER_FIELD = re.compile(r"[:@](?:type|returns?|rtype|raises?|except|exception|yields?|var|ivar|cvar)\b[^:]*:")


def parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """(description, parameter name to text) of a docstring.

    The description is the first line and, a blank line after it, the rest up to the parameters (the form in which TAU2
    writes descriptions). Parameters stand in an ``Args:`` section, as ``name: text`` lines of their own, under
    ``Parameters`` and a line of dashes, or in ``:param name: text`` fields.
    """
    lines = inspect.cleandoc(text).splitlines()
    head, parameters = _fields(lines) or _underlined(lines) or _sections(lines)
    first, _, rest = "\n".join(head).strip().partition("\n")
    rest = rest.strip()
    return (f"{first}\n\n{rest}" if rest else first), parameters


def _sections(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    """Google style, and plain lines."""
    start = next((i for i, line in enumerate(lines) if line.strip().lower() in _SECTIONS), len(lines))
    head, parameters = lines[:start], {}
    section = ""
    block: list[str] = []
    for line in lines[start:]:
        if line.strip().lower() in _SECTIONS and not line[:1].isspace():
            section = line.strip().lower()
        elif section in _SECTIONS[:3]:
            block.append(line)
    if block:
        parameters = _parameter_lines(inspect.cleandoc("\n".join(block)).splitlines())
    else:
        plain = next((i for i, line in enumerate(head) if i and re.match(r"\w+: \S", line)), len(head))
        parameters = _parameter_lines(head[plain:])
        head = head[:plain]
    return head, parameters


def _fields(lines: list[str]) -> tuple[list[str], dict[str, str]] | None:
    """``:param name: text``, as Sphinx reads it; None without such a line."""
    start = next((i for i, line in enumerate(lines) if _FIELD.match(line) or _OTHER_FIELD.match(line)), None)
    if start is None:
        return None
    described: list[str] = []
    reading = False
    for line in lines[start:]:
        field = _FIELD.match(line)
        if field:
            described.append(f"{field.group(1)}: {field.group(2)}")
        elif reading and line[:1].isspace():
            described.append(line)
        reading = field is not None or (reading and line[:1].isspace())
    return lines[:start], _parameter_lines(described)


def _underlined(lines: list[str]) -> tuple[list[str], dict[str, str]] | None:
    """NumPy style: headings over dashes; None without one."""
    headings = [i for i in range(len(lines) - 1) if lines[i].strip() and re.fullmatch(r"-{3,}", lines[i + 1].strip())]
    if not headings:
        return None
    described: list[str] = []
    for start, end in zip(headings, [*headings[1:], len(lines)], strict=True):
        if lines[start].strip().lower() in ("parameters", "other parameters"):
            described += [re.sub(r"^(\w+)(?:\s*:.*)?$", r"\1:", line) for line in lines[start + 2 : end]]
    return lines[: headings[0]], _parameter_lines(described)


def _parameter_lines(lines: list[str]) -> dict[str, str]:
    """``name: text`` with continuation lines indented below."""
    texts: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        start = re.match(r"(\w+)(?: \([^)]*\))?:\s*(.*)", line)
        if start:
            name = start.group(1)
            texts[name] = [start.group(2)]
        elif name and line.strip():
            texts[name].append(line)
    out = {}
    for name, (first, *more) in texts.items():
        rest = inspect.cleandoc("\n".join(["", *more])) if more else ""
        out[name] = f"{first}\n{rest}".strip()
    return out
