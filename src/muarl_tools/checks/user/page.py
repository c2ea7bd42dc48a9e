"""The page of a check, in the reports' style; and its tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from muarl.accounts.budgets import RolloutEnd
from muarl.basics.version import __version__
from muarl.pages.charts import number, percent
from muarl.pages.markup import Html, join, table_of, tag
from muarl.report.report import sectioned
from muarl_tools.checks.printing import row_of
from muarl_tools.checks.user.conversations import AGENTS
from muarl_tools.checks.user.figures import FIT, SOLVED_FIT, SOLVED_LEAST, STYLE_MOST, UNFIT

Figures = Mapping[str, Any]
SHARES = ("questions", "hesitation", "politeness", "small_letter", "no_stop")


def check_page(figures: Figures) -> str:
    """One HTML page without scripts."""
    verdict, domains = figures["verdict"], figures["by_domain"]
    sections = [
        ("rules", "What it did wrong", _rules(figures)),
        ("agents", "By agent", _parts("Agent", figures["by_agent"])),
        ("domains", "By domain", _parts("Domain", domains) if len(domains) > 1 else None),
        ("language", "Its language", _language(figures)),
        ("cost", "Cost and waiting", _cost(figures)),
        ("examples", "Examples", _examples(figures)),
        ("reading", "How to read this", _reading(figures)),
    ]
    top = (
        tag("p", "muarl · user check", class_="eyebrow"),
        tag("h1", figures["user"]),
        tag("p", tag("strong", verdict["name"].capitalize()), f" for {', '.join(domains)}.", class_="lede"),
        tag("ul", [tag("li", reason) for reason in verdict["reasons"]]) if verdict["reasons"] else None,
        tag(
            "p",
            f"{figures['conversations']:,} conversations on {figures['tasks']:,} tasks with {len(figures['by_agent'])} "
            f"kinds of agents; {figures['messages']:,} messages of the user.",
            class_="soft",
        ),
        _notices(figures),
    )
    foot = tag("p", f"Made by muarl {__version__}, ", tag("code", "muarl user check"), ".")
    return sectioned(f"{figures['user']} · muarl user check", top, sections, foot)


def _notices(figures: Figures) -> Html | None:
    lost, missing = figures["lost"], figures["missing_agents"]
    lines = []
    if figures["broke_off"] is not None:
        lines.append(f"Incomplete: the check broke off. {figures['broke_off']}")
    if lost["conversations"]:
        lines.append(f"{lost['conversations']} conversations were lost. The first: {lost['first']}")
    if figures["ended"] != "complete":
        lines.append(f"Not all conversations were played: {RolloutEnd(figures['ended']).why}.")
    lines += [f"No agent “{name}”: {why}" for name, why in missing.items()]
    return join([tag("p", line, class_="notice calm") for line in lines]) if lines else None


def _spread(found: Figures, form: Any) -> str:
    low, high = found["interval"]
    return f"{form(low)} to {form(high)}"


def _rule_cells(found: Figures) -> list[str]:
    per, share = found["per_100"], found["conversations"]
    return [
        f"{found['findings']:,}", number(per["value"]), _spread(per, number),
        percent(share["value"]), _spread(share, percent),
    ]  # fmt: skip


def _rules(figures: Figures) -> Html:
    head = ("Rule", "Found", "Per 100 messages", "95% interval", "Conversations", "95% interval")
    rows = [row_of(tag("strong", "any grave fault"), _rule_cells(figures["grave"]))]
    for grave in (True, False):
        for name, found in figures["rules"].items():
            if found["grave"] is grave:
                label = name.replace("_", " ") + ("" if grave else " (style)")
                rows.append(row_of(join(label, tag("small", found["about"])), _rule_cells(found)))
    judge = figures.get("judge")
    if judge is not None:
        rows.append(row_of(join("judge", tag("small", f"found by {judge['model']}")), _rule_cells(judge)))
    return table_of(head, rows, "figures")


def _parts(what: str, parts: Mapping[str, Figures]) -> Html:
    """A row for each agent, or for each domain."""
    head = (what, "Conversations", "Messages each", "With a grave fault", "95% interval", "Found most")
    about = {"Agent": lambda name: join(name, tag("small", AGENTS.get(name, "a model")))}.get(what, str)
    return table_of(head, [row_of(about(name), _part_cells(part)) for name, part in parts.items()], "figures")


def _part_cells(part: Figures) -> list[str]:
    share = part["grave"]["conversations"]
    most = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in list(part["findings"].items())[:3]) or "–"
    return [
        f"{part['conversations']:,}", number(part["messages"]), percent(share["value"]), _spread(share, percent), most,
    ]  # fmt: skip


def _language(figures: Figures) -> Html:
    style, logs = figures["style"], figures.get("logs")
    if logs is None:
        rows = [
            row_of(label, [percent(style[key]) if key in SHARES else number(style[key])])
            for key, label in STYLE_LABELS.items()
        ]
        note = "Compare it with people: give their conversations with --logs."
        return join(table_of(("Figure", "This user"), rows, "figures"), tag("p", note, class_="soft"))
    rows = []
    for key, found in logs["features"].items():
        form = percent if key in SHARES else number
        told = "yes" if found["differs"] else "no"
        rows.append(row_of(found["about"], [form(found["user"]), form(found["logs"]), _spread(found, form), told]))
    counts = logs["conversations"]
    text = (
        f"From {counts['user']:,} conversations of this user and {counts['logs']:,} of the logs. Of 0 to 1, the "
        f"lengths of messages are {logs['length']:.2f} apart and the words {logs['vocabulary']:.2f}; one half of the "
        f"logs is {logs['people']['length']:.2f} and {logs['people']['vocabulary']:.2f} from the other, which is what "
        "their number alone makes."
    )
    words = [
        tag("p", "More of this user’s conversations have: ", ", ".join(logs["typical_of_user"]) or "–", class_="soft"),
        tag("p", "More of the logs’ have: ", ", ".join(logs["typical_of_logs"]) or "–", class_="soft"),
    ]
    head = ("Figure", "This user", "Logs", "Difference (95%)", "Differs")
    return join(tag("p", text), table_of(head, rows, "figures"), words)


STYLE_LABELS: Mapping[str, str] = {
    "words": "words a message", "first_words": "words of the first message", "messages": "messages a conversation",
    "questions": "messages with a question", "hesitation": "messages that hesitate",
    "politeness": "messages with please, thanks or sorry", "small_letter": "messages that begin with a small letter",
    "no_stop": "messages that end without punctuation", "distinct_of_100": "distinct words of 100",
}  # fmt: skip


def _cost(figures: Figures) -> Html:
    cost = figures["cost"]
    rows = [
        row_of("requests a conversation", [number(cost["requests"])]),
        row_of("tokens a conversation (prompt, completion)", [
            f"{cost['prompt_tokens']:,.0f}, {cost['completion_tokens']:,.0f}"
        ]),
        row_of("dollars for 1,000 conversations", [
            f"{1000 * cost['dollars']:,.2f}" if cost["dollars"] else "– (no price is known)"
        ]),
        row_of("seconds a conversation waits for the user", [number(cost["seconds"])]),
        row_of("seconds a message (median, 95th percentile)", [
            f"{number(cost['seconds_a_message']['median'])}, {number(cost['seconds_a_message']['95%'])}"
        ]),
    ]  # fmt: skip
    return table_of(("Figure", "This user"), rows, "figures")


def _examples(figures: Figures) -> Html | None:
    cards = []
    for rule, rows in figures["examples"].items():
        talks = [
            tag(
                "div",
                tag("h4", f"{row['agent']} · {row['domain']} · {row['task']} · message {row['turn']}"),
                tag("p", row["detail"], class_="soft"),
                tag(
                    "div",
                    tag("div", tag("span", "Agent", class_="who"), row["agent_said"], class_="say agent"),
                    tag("div", tag("span", "Customer", class_="who"), row["user_said"], class_="say user"),
                    class_="talk",
                ),
            )
            for row in rows
        ]
        cards.append(tag("article", tag("h3", rule.replace("_", " ")), tag("div", talks, class_="pair"), class_="task"))
    return join(cards) if cards else None


def _reading(figures: Figures) -> Html:
    solved = figures["solved_with_expert"]
    lines = [
        f"Fit: at most {FIT:.0%} of conversations with a grave fault, to the end of the 95% interval, and no style "
        f"rule surely above {STYLE_MOST:.0%} of conversations, and the expert solves at least {SOLVED_FIT:.0%} of its "
        f"tasks. Unfit: surely more than {UNFIT:.0%}, or the expert surely solves less than {SOLVED_LEAST:.0%}. "
        "Everything between is fit with reservations.",
        "Intervals of rates per 100 messages draw whole conversations, those of shares of conversations whole tasks.",
        "Rules read English and would rather miss a fault than see one where there is none: what they measure is a "
        "lower bound. docs/user-check.md says how many seeded faults each of them finds.",
    ]
    if solved is not None:
        lines.insert(0, f"With this user the scripted expert solves {percent(solved['value'])} of its tasks "
                        f"({_spread(solved, percent)}); what it fails is the user’s doing.")  # fmt: skip
    return tag("ul", [tag("li", line) for line in lines])


def check_table(figures: Figures) -> Table:
    """The rules that found something, for a terminal; all grave ones together first."""
    table = Table(title=f"{figures['user']}: {figures['verdict']['name']}")
    for name in ("rule", "found", "per 100 messages", "conversations"):
        table.add_column(name, justify="left" if name == "rule" else "right", no_wrap=name == "rule")
    rows: Sequence[tuple[str, Figures]] = [
        ("any grave fault", figures["grave"]),
        *((n, f) for n, f in figures["rules"].items() if f["findings"]),
        *([("judge", figures["judge"])] if "judge" in figures else []),
    ]
    for name, found in rows:
        per, share = found["per_100"], found["conversations"]
        style = "" if found.get("grave", True) else " (style)"
        table.add_row(
            name.replace("_", " ") + style,
            f"{found['findings']:,}",
            f"{number(per['value'])} ({_spread(per, number)})",
            f"{percent(share['value'])} ({_spread(share, percent)})",
        )
    return table
