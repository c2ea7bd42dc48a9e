"""What customers of a trade tell, and how they are identified."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from muarl.domains.kit.declaration import (
    Draw,
    DrawContext,
    Fact,
    Identity,
    RecordDescription,
    Slot,
    of,
    one_of,
    own,
    pattern,
    words,
)
from muarl_worlds.companies.trades import Trade

IDENTITY = Identity(
    tool="identify_customer",
    table="customers",
    key="customer_id",
    facts=(
        Fact("customer_id", pattern(r"C-\d{6}"), tells="My customer number is {customer_id}.", noun="customer number"),
        Fact("postcode", pattern(r"\d{5}"), tells="My postcode is {postcode}.", wrong=True),
    ),
    ask=(
        "May I have your customer number and your postcode?",
        "Could you give me your customer number and postcode, please?",
        "What are your customer number and postcode, please?",
    ),
    retry=("I could not find a customer with this number and postcode. Could you check both, please?",),
    say=(
        "It's {customer_id}, postcode {postcode}.",
        "My customer number is {customer_id} and I live in {postcode}.",
        "{customer_id}, {postcode}.",
        "I am customer {customer_id}, in {postcode}.",
    ),
)


@lru_cache(maxsize=16)
def slots_of(trade: Trade) -> Mapping[str, Slot]:
    """The slots of a trade's intents, by name."""
    noun, product = trade.contract, pattern(trade.product_pattern, exact=True)
    contract = Slot(
        "contract", pattern(rf"{trade.prefix}\d{{5}}"),
        ask=(f"Which {noun} is it?", f"Which of your {trade.contracts} do you mean?"),
        phrase=f"{noun} {{}}",
        say=(f"It's {noun} {{}}.", f"{noun.capitalize()} {{}}.", "The number is {}."),
        draw=own("contracts", trade.key, mark="product"),
        noun=(noun, trade.contracts),
        described=RecordDescription(
            kind=product, match="product", id=trade.key, look=f"list_{trade.contracts}", records=trade.contracts,
            given={"customer_id": "customer_id"}, phrase="my {}", cue="my",
            say=("My {}.", "I don't have the number. It is my {}."),
        ),
    )  # fmt: skip
    target = Slot(
        "target", product,
        ask=("Which product should it become?", "Into which product should I change it?"),
        say=("{}, please.", "It should become {}.", "I would like {}."),
        change=("Actually, I would rather have {}.",),
        draw=_targets(trade), cue="to|into|become|like|have", noun=("product",),
    )  # fmt: skip
    amount = Slot(
        "amount", "money",
        ask=("What amount would you like?", "To what amount should I set it?"),
        say=("{}.", "{}, please.", "I was thinking of {}."),
        change=("Actually, {} is better.", "Let me make that {}."),
        draw=one_of(*_amounts(trade)), noun=("amount",),
    )  # fmt: skip
    topics = {t.name: t.wordings for t in trade.topics if t.wordings}
    topic = Slot(
        "topic", words(topics), ask=("What would you like to know of it?",), phrase="the {}",
        say=("The {}.", "I mean the {}."), noun=("know",), draw=one_of(*topics),
    )  # fmt: skip
    return {slot.name: slot for slot in (contract, target, amount, topic)}


def _targets(trade: Trade) -> Draw:
    """The other products of the family."""

    def others(drawn: DrawContext) -> list[str]:
        mine = str(drawn.contract.product)
        there = next(iter(drawn.tables["company"]))
        products = drawn.tables["company"][there]["products"]
        return [p for p in products if p != mine and trade.family(p) == trade.family(mine)]

    return of(others)


def _amounts(trade: Trade) -> list[int]:
    topics = {operation.topic for operation in trade.operations if operation.kind == "amount"}
    return sorted({value for name in topics for value in trade.topic(name).values})
