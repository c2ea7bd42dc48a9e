"""A bank: savings, current and card accounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.tooling import tool
from muarl_worlds.companies.services import service_of
from muarl_worlds.companies.tools import CompanyDomain, policy_of
from muarl_worlds.companies.trades import Operation, Topic, Trade

BANK = Trade(
    name="bank-knowledge",
    company="bank",
    contract="account",
    contracts="accounts",
    prefix="A-",
    places=(
        "Larkham",
        "Oststead",
        "Quillford",
        "Merrow",
        "Tansley",
        "Underby",
        "Vennhill",
        "Wexcombe",
        "Yarrowdale",
        "Ashquay",
        "Birkholm",
        "Cravendale",
    ),
    endings=("Savings Bank", "Mutual", "People's Bank", "Trust Bank", "Cooperative Bank"),
    brands=(
        "Alder",
        "Brook",
        "Cedar",
        "Dune",
        "Ember",
        "Fjord",
        "Grove",
        "Heron",
        "Juniper",
        "Kestrel",
        "Lagoon",
        "Maple",
        "Nettle",
        "Osprey",
        "Pebble",
    ),
    families={"Saver": "savings accounts", "Current": "current accounts", "Card": "card accounts"},
    tiers=("Basic", "Plus", "Prime", "Junior"),
    groups=("students", "pensioners", "apprentices", "members of the cooperative"),
    topics=(
        Topic("closing fee", "dollars", "fees", range(15, 100, 5), wordings=("closing fee", "fee for closing")),
        Topic("card fee", "dollars", "fees", range(15, 100, 5), wordings=("card fee", "fee for a new card")),
        Topic("pause fee", "dollars", "fees", range(15, 100, 5), optional=True, wordings=("pause fee",)),
        Topic(
            "statement fee", "dollars", "fees", range(11, 49), wordings=("statement fee", "fee for paper statements")
        ),
        Topic("daily limit", "dollars", "limits", range(500, 6000, 250), wordings=("daily limit", "limit per day")),
        Topic("notice period", "days", "limits", range(14, 124, 10), wordings=("notice period", "period of notice")),
        Topic("waiting period", "days", "limits", range(30, 365, 15), wordings=("waiting period",)),
        Topic("permitted change", "product", "changes", optional=True),
    ),
    operations=(
        Operation(
            name="close",
            kind="charge",
            topic="closing fee",
            title="closing {family} accounts",
            stem="close_account",
            code="CL",
            field="status",
            becomes="closed",
            share=1.4,
            says=("close {contract}", "have {contract} closed", "close one of my accounts", "close an account"),
            heard=r"\bclose (?:account|my|one|an?\b)|\bclosed\b",
            because=("I hardly use it.", "I have too many of them."),
            doing="closing an account",
            propose=(
                "close account {contract} for a closing fee of ${fee}",
                "close {contract}, your {product}; the closing fee is ${fee}",
            ),
            done=("Account {contract} is closed.", "Done, account {contract} has been closed."),
        ),
        Operation(
            name="replace_card",
            kind="charge",
            topic="card fee",
            title="sending new cards for {family} accounts",
            stem="send_new_card",
            code="NC",
            field="card",
            becomes="sent",
            share=1.4,
            says=("get a new card for {contract}", "order another card for {contract}", "get a new card"),
            heard=r"\b(?:get|order|need|have) (?:a new|another|me a new) card",
            because=("The old one is broken.", "The chip does not work any more."),
            doing="sending a new card",
            propose=(
                "send a new card for account {contract} for a card fee of ${fee}",
                "send you a new card for {contract}, your {product}; the card fee is ${fee}",
            ),
            done=("A new card for {contract} is on its way.", "Done, the new card for {contract} has been sent."),
        ),
        Operation(
            name="pause",
            kind="charge",
            topic="pause fee",
            title="pausing {family} accounts",
            stem="pause_account",
            code="PA",
            field="status",
            becomes="paused",
            says=("pause {contract}", "have {contract} paused for a while", "pause one of my accounts"),
            heard=r"\bpause (?:account|my|one|an?\b)|\bpaused\b",
            because=("I am going abroad for a year.", "I shall not need it for some time."),
            doing="pausing an account",
            propose=(
                "pause account {contract} for a pause fee of ${fee}",
                "pause {contract}, your {product}; the pause fee is ${fee}",
            ),
            done=("Account {contract} is paused.", "Done, account {contract} has been paused."),
        ),
        Operation(
            name="set_limit",
            kind="amount",
            topic="daily limit",
            title="setting limits of {family} accounts",
            stem="set_limit",
            code="LI",
            field="limit",
            becomes=None,
            says=(
                "set the limit of {contract} to {amount}",
                "have a limit of {amount} a day on {contract}",
                "change the limit of {contract}",
                "change the limit of an account",
            ),
            heard=r"\b(?:set|change|have|raise) (?:the|a) limit",
            because=("I have something big to pay.", "I am about to buy furniture."),
            doing="setting a limit",
            propose=(
                "set the limit of account {contract} to {amount}",
                "set the limit of {contract}, your {product}, to {amount} a day",
            ),
            done=(
                "The limit of {contract} is {amount} now.",
                "Done, the limit of {contract} has been set to {amount}.",
            ),
        ),
        Operation(
            name="overdraft",
            kind="wait",
            topic="waiting period",
            title="granting overdrafts on {family} accounts",
            stem="grant_overdraft",
            code="OV",
            field="overdraft",
            becomes="granted",
            says=("get an overdraft on {contract}", "have an overdraft for {contract}", "get an overdraft"),
            heard=r"\boverdraft",
            because=("Some months are longer than others.", "I would sleep better with it."),
            doing="granting an overdraft",
            propose=("grant an overdraft on account {contract}", "grant the overdraft on {contract}, your {product}"),
            done=("The overdraft on {contract} is granted.", "Done, account {contract} has an overdraft now."),
        ),
        Operation(
            name="change_product",
            kind="switch",
            topic="permitted change",
            title="changing the product of {family} accounts",
            stem="change_product",
            code="CH",
            field="product",
            becomes=None,
            says=(
                "turn {contract} into {target}",
                "switch {contract} to {target}",
                "turn {contract} into another product",
                "switch the product of an account",
            ),
            heard=r"\bturn (?:account|my)|\bswitch (?:account|my|the product)",
            because=("It would suit me better.", "A friend has it and likes it."),
            doing="changing the product",
            propose=("turn account {contract} into {target}", "switch {contract} from {product} to {target}"),
            done=("Account {contract} is {target} now.", "Done, {contract} has become {target}."),
        ),
    ),
    tiny_operations=("close", "replace_card", "pause"),
    remarks=(
        "Our advisers are glad to explain every detail in person.",
        "Customers find the current version of each document in every branch.",
        "The wording was agreed with the works council and the auditors.",
        "Amounts are taken from the account on the next working day.",
        "Please keep a note of the conversation in the customer's file.",
        "Joint holders are informed by letter, each at their own address.",
        "Questions are gathered by the desk and answered once a week.",
        "The savings year ends with the calendar year.",
        "Branches close at four on the day before a public holiday.",
        "Whoever handles the matter signs with name and date.",
        "Letters in other languages are translated at no charge.",
        "Safe deposit boxes are looked after by another team.",
        "Coins are counted on Wednesdays only.",
        "Our cooperative was founded by farmers who had no bank nearby.",
        "The archive keeps paper copies for ten years.",
        "Feedback of customers is read by the board every quarter.",
    ),
    subjects=(
        "Opening hours",
        "Parking for visitors",
        "The history of the house",
        "Training of new colleagues",
        "Coins and notes",
        "Works of art in the hall",
        "Data protection at the desk",
        "Complaints by letter",
        "Safe deposit boxes",
        "Care of plants",
        "The yearly report",
        "Sponsoring of clubs",
        "Lost keys",
        "Children's savings week",
        "Heating in winter",
        "Visits of schools",
    ),
    outside=(
        "a mortgage",
        "an inheritance",
        "a court order on my account",
        "a fraud that I have seen",
        "a complaint about an adviser",
        "a job at the bank",
    ),
)


class KnowledgeBank(CompanyDomain):
    """The service desk of a bank."""

    name: ClassVar[str] = BANK.name
    policy: ClassVar[Path | str] = policy_of(BANK, "policy.md")
    trade: ClassVar[Trade] = BANK

    @tool
    def list_accounts(self, customer_id: str) -> dict[str, Any]:
        """The customer's accounts, without their details.

        customer_id: the customer
        """
        return self._held(customer_id)

    @tool
    def get_account(self, account_id: str) -> dict[str, Any]:
        """All details of an account.

        account_id: the account, such as 'A-12345'
        """
        return dict(self._contract(account_id))


SERVICE = service_of(BANK, KnowledgeBank)
