"""How an LLM is told to play a customer: a benchmark's own guidelines for its tasks, ours for all others.

Which text is taken follows from the tasks alone, so that it is the same for everybody. Scores taken with different
guidelines are not comparable, so the name of the guidelines stands in every report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

from muarl.basics.errors import ConfigError

GROUP = "muarl.guidelines"
"""The entry point group of guidelines that packages bring."""

Style = Literal["auto", "tau2", "muarl", "tau1"]

OWN = """\
# How to play the customer

You are a customer who writes to customer service. An agent answers you. A scenario follows below; it is all you know.

- Write one short message at a time, as a customer would type it. Never write the agent's part.
- Say what you want, then let the agent ask. Give a detail when it is needed or asked for, not before.
- Use your own words; do not copy sentences from the scenario.
- Keep to the scenario in everything you want, know, accept and refuse. Never invent a name, number, date or wish. What
  the scenario does not say, you do not know.
- Before you agree to something, check that it is what the scenario wants.
{tools}
How the conversation ends:
- Everything that you came for is done, or you were told that it can't be done and the scenario has no other wish: write
  ###STOP###
- The agent says that you are being transferred to a human: write ###TRANSFER###
- The scenario does not say enough for you to go on: write ###OUT-OF-SCOPE###
"""

OWN_TOOLS = """\
- You also have tools, which act on your own side. In one turn either write a message or call a tool, never both.
- Call a tool when the agent asks you to do or look at something that it covers. Report what the tool really answered.
- If a tool fails, mend the call and try again. If the agent asks for several things at once, say that you can do one at
  a time.
- The agent does not see your tool calls; tell it what happened.
"""

CORRECTION = """\
# Your last message was not sent

You were about to write:
<rejected>
{said}
</rejected>
This cannot be sent, since it {faults}.
Write another message in its place: what the customer says or does next, without that fault, and nothing about it."""


def correction(said: str, faults: Sequence[str]) -> str:
    """What a model is told whose message was rejected, behind its system prompt. ``faults``: what the message does,
    such as "invents a number"."""
    return CORRECTION.replace("{said}", said).replace("{faults}", "; it ".join(faults))


@dataclass(frozen=True, slots=True)
class Guidelines:
    """A way to prompt the user."""

    name: str
    """For reports."""
    template: str
    """A text with one ``{scenario}`` for the scenario's."""

    def system_prompt(self, scenario: str) -> str:
        """The user's system prompt. Braces in the scenario stay as they are."""
        return self.template.replace("{scenario}", scenario)


def around_scenario(name: str, text: str) -> Guidelines:
    """Guidelines text followed by the scenario in its tags, byte for byte as TAU2 joins them."""
    return Guidelines(name, text + "\n\n<scenario>\n{scenario}\n</scenario>")


def load_guidelines(style: Style = "auto", *, tools: bool = False) -> Guidelines:
    """Find guidelines for a user with or without tools.

    "muarl": our own text, and so is "auto" (whoever plays a benchmark's tasks names its text). Any other: the text that
    a package brings by an entry point of that name in the group ``muarl.guidelines``, a function that takes ``tools``
    and gives ``Guidelines``, such as "tau1" and "tau2". ConfigError if none does; DataError if a benchmark's data are
    not installed.
    """
    if style in ("auto", "muarl"):
        return around_scenario("muarl", OWN.format(tools=OWN_TOOLS if tools else "").strip())
    point = next(iter(metadata.entry_points(group=GROUP, name=style)), None)
    if point is None:
        raise ConfigError(f"no installed package has the guidelines {style!r}")
    guidelines: Guidelines = point.load()(tools=tools)
    return guidelines
