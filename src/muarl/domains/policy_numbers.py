"""The numbers of a policy's rules: which a text has, and which a declaration names (``refuse_if(..., rule=10)``)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from muarl.basics.errors import ConfigError

RuleNumbers = int | str | Sequence[int | str] | None
"""Which numbered rules of the policy something keeps: 10, "3.2", or several; None: nobody says."""

_NUMBER = re.compile(r"\d+(?:\.\d+)*[a-z]?")
_RULE = re.compile(
    rf"^ ?(?P<lead>#{{1,6}} +|[*_]{{2}}|)(?P<word>[Rr]ule +|§ ?|)(?P<number>{_NUMBER.pattern})(?P<mark>[.:)]?)"
    r"(?:[*_]{2})?[ \t]+(?P<text>\S.*)$",
    re.MULTILINE,
)
_ITEM = re.compile(r"[-*\u2022] |\(?[a-z0-9]{1,3}[.)] ")
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_NEXT = re.compile(rf"^#{{1,6}} |\n[ \t]*\n(?=\S)(?!{_ITEM.pattern})", re.MULTILINE)


def numbers_of(rule: RuleNumbers, where: str = "rule") -> tuple[str, ...]:
    """The numbers as texts. ConfigError for what is no number of a rule."""
    several = () if rule is None else tuple(rule) if isinstance(rule, (list, tuple)) else (rule,)
    texts = tuple(str(one) for one in several)
    for one, text in zip(several, texts, strict=True):
        if isinstance(one, bool) or not isinstance(one, (int, str)) or not _NUMBER.fullmatch(text):
            raise ConfigError(f"{where}: rule: {one!r} is no number of a rule: write 10, '3.2' or several, (4, 6)")
    return texts


def numbered(policy: str) -> Mapping[str, str]:
    """The numbered rules of a policy's text: those whose lines begin with "10.", "4)", "Rule 7:", "3.2 Loans" or are
    headings of that kind, with the first line of each. A number that stands there twice tells no rule from another, and
    is left out, as is a line such as "3 days" that only begins with a number."""
    rules = [(m["number"], m["text"].strip()) for m in _RULE.finditer(policy) if _is_rule(m)]
    often = Counter(number for number, _ in rules)
    return {number: text for number, text in rules if often[number] == 1}


def whole_rules(policy: str) -> Mapping[str, str]:
    """The same rules with the whole text of each: up to the next number or heading and, but for a rule that is itself a
    heading, to the first line behind a blank one that is neither indented nor an item of a list. Lines of one paragraph
    are joined."""
    starts = [m for m in _RULE.finditer(policy) if _is_rule(m)]
    ends = [*(m.start() for m in starts), len(policy)][1:]
    numbers = numbered(policy)
    rules = {}
    for m, end in zip(starts, ends, strict=True):
        if m["number"] in numbers:
            heading = m["lead"].startswith("#")
            rules[m["number"]] = _unwrapped((_HEADING if heading else _NEXT).split(policy[m.start("text") : end], 1)[0])
    return rules


def _unwrapped(text: str) -> str:
    """A text whose paragraphs and items stand on one line each."""
    lines: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if line and lines and lines[-1] and not _ITEM.match(line):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return "\n".join(lines).strip()


def _is_rule(line: re.Match[str]) -> bool:
    if line["word"] or line["mark"] or line["lead"].startswith("#"):
        return True
    return "." in line["number"] and line["text"][0].isupper()
