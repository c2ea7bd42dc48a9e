"""A utility: electricity, gas and water."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.tooling import tool
from muarl_worlds.companies.services import service_of
from muarl_worlds.companies.tools import CompanyDomain, policy_of
from muarl_worlds.companies.trades import Operation, Topic, Trade

UTILITY = Trade(
    name="utility-knowledge",
    company="utility",
    contract="tariff",
    contracts="tariffs",
    prefix="T-",
    places=(
        "Dammford",
        "Weirbridge",
        "Turbine Cross",
        "Lockham",
        "Pylon Hill",
        "Sluiceby",
        "Reservoir End",
        "Gasholm",
        "Millrace",
        "Penstock",
        "Springhead",
        "Culverton",
    ),
    endings=("Municipal Works", "Energy", "Power and Water", "Supply Company", "Works"),
    brands=(
        "Amber",
        "Breeze",
        "Copper",
        "Dolomite",
        "Estuary",
        "Flint",
        "Glacier",
        "Humming",
        "Indigo",
        "Jetty",
        "Kiln",
        "Lichen",
        "Mistral",
        "Nimbus",
        "Opal",
    ),
    families={"Power": "electricity", "Gas": "gas", "Water": "water"},
    tiers=("Fixed", "Flexible", "Night", "Garden"),
    groups=("large families", "allotment holders", "bakeries", "tenants of the city"),
    topics=(
        Topic("exit fee", "dollars", "prices", range(15, 100, 5), wordings=("exit fee", "fee for ending it")),
        Topic(
            "testing fee",
            "dollars",
            "prices",
            range(15, 100, 5),
            wordings=("testing fee", "fee for a test of the meter"),
        ),
        Topic("relocation fee", "dollars", "prices", range(15, 100, 5), optional=True, wordings=("relocation fee",)),
        Topic("copy fee", "dollars", "prices", range(11, 49), wordings=("copy fee", "fee for copies of bills")),
        Topic(
            "highest instalment",
            "dollars",
            "instalments and periods",
            range(100, 900, 25),
            wordings=("highest instalment", "most that can be paid a month"),
        ),
        Topic(
            "objection period",
            "days",
            "instalments and periods",
            range(14, 124, 10),
            wordings=("objection period", "time for objecting to a bill"),
        ),
        Topic("probation", "days", "instalments and periods", range(30, 365, 15), wordings=("probation",)),
        Topic("permitted successor", "product", "successors", optional=True),
    ),
    operations=(
        Operation(
            name="end_supply",
            kind="charge",
            topic="exit fee",
            title="ending {family} tariffs",
            stem="end_supply",
            code="EN",
            field="status",
            becomes="ended",
            share=1.4,
            says=("end {contract}", "have {contract} ended", "end one of my tariffs", "end a tariff"),
            heard=r"\bend (?:tariff|my|one|a\b)|\bended\b",
            because=("I am moving in with my son.", "We have our own well now."),
            doing="ending a tariff",
            propose=(
                "end tariff {contract} for an exit fee of ${fee}",
                "end {contract}, your {product}; the exit fee is ${fee}",
            ),
            done=("Tariff {contract} is ended.", "Done, tariff {contract} has been ended."),
        ),
        Operation(
            name="test_meter",
            kind="charge",
            topic="testing fee",
            title="testing meters of {family} tariffs",
            stem="order_meter_test",
            code="MT",
            field="meter",
            becomes="to be tested",
            share=1.4,
            says=("have the meter of {contract} tested", "get the meter tested for {contract}", "have a meter tested"),
            heard=r"\bmeter\b[^.?!]*\btested",
            because=("It runs even when everything is off.", "The last bill was twice the usual one."),
            doing="testing a meter",
            propose=(
                "have the meter of tariff {contract} tested for a testing fee of ${fee}",
                "send somebody to test the meter of {contract}, your {product}; the testing fee is ${fee}",
            ),
            done=(
                "The test of the meter of {contract} is ordered.",
                "Done, the test for tariff {contract} has been ordered.",
            ),
        ),
        Operation(
            name="relocate",
            kind="charge",
            topic="relocation fee",
            title="relocating {family} tariffs",
            stem="relocate_tariff",
            code="RE",
            field="place",
            becomes="new address",
            says=(
                "take {contract} along to my new address",
                "relocate {contract} to my new address",
                "relocate one of my tariffs",
            ),
            heard=r"\btake\b[^.?!]*\balong|\brelocate\b",
            because=("We are moving next month.", "The new flat is two streets away."),
            doing="relocating a tariff",
            propose=(
                "relocate tariff {contract} for a relocation fee of ${fee}",
                "relocate {contract}, your {product}; the relocation fee is ${fee}",
            ),
            done=("Tariff {contract} is relocated.", "Done, tariff {contract} has been relocated."),
        ),
        Operation(
            name="set_instalment",
            kind="amount",
            topic="highest instalment",
            title="setting the instalment of {family} tariffs",
            stem="set_instalment",
            code="IN",
            field="instalment",
            becomes=None,
            says=(
                "set the instalment of {contract} to {amount}",
                "pay an instalment of {amount} for {contract}",
                "change the instalment of {contract}",
                "change the instalment of a tariff",
            ),
            heard=r"\b(?:set|change|pay|raise) (?:the|an) instalment",
            because=("I do not want to pay so much at the end of the year.", "The winter was long."),
            doing="setting the instalment",
            propose=(
                "set the instalment of tariff {contract} to {amount}",
                "set the instalment of {contract}, your {product}, to {amount} a month",
            ),
            done=(
                "The instalment of {contract} is {amount} now.",
                "Done, the instalment of {contract} has been set to {amount}.",
            ),
        ),
        Operation(
            name="pay_quarterly",
            kind="wait",
            topic="probation",
            title="quarterly payment of {family} tariffs",
            stem="allow_quarterly_payment",
            code="QP",
            field="payment",
            becomes="quarterly",
            says=("pay {contract} by the quarter", "have {contract} paid every quarter", "pay a tariff by the quarter"),
            heard=r"\bquarter",
            because=("My pension comes by the quarter.", "It is less to think of."),
            doing="paying by the quarter",
            propose=(
                "have tariff {contract} paid by the quarter",
                "have {contract}, your {product}, paid every quarter",
            ),
            done=(
                "Tariff {contract} is paid by the quarter now.",
                "Done, payment of {contract} by the quarter has been set up.",
            ),
        ),
        Operation(
            name="follow_on",
            kind="switch",
            topic="permitted successor",
            title="replacing {family} tariffs",
            stem="replace_tariff",
            code="FO",
            field="product",
            becomes=None,
            says=(
                "turn {contract} into {target}",
                "switch {contract} to {target}",
                "turn {contract} into another product",
                "switch the product of a tariff",
            ),
            heard=r"\bturn (?:tariff|my)|\bswitch (?:tariff|my|the product)",
            because=("I have read about it in the paper.", "It should be cheaper for us."),
            doing="replacing a tariff by another",
            propose=("turn tariff {contract} into {target}", "switch {contract} from {product} to {target}"),
            done=("Tariff {contract} is {target} now.", "Done, {contract} has become {target}."),
        ),
    ),
    tiny_operations=("end_supply", "test_meter", "relocate"),
    remarks=(
        "Meters are read once a year, mostly in February.",
        "The network is looked after by a company of its own.",
        "Pipes within the house are the owner's business.",
        "Works in the street are announced on the doors.",
        "Bills of several tariffs come on one sheet.",
        "The water tower can be visited on the first Sunday in May.",
        "Price changes are printed in the city's gazette.",
        "Our fitters carry a badge with a photograph.",
        "The customer's readings count if they are sent in time.",
        "Old lamps are taken back at the gate.",
        "The control room is manned day and night.",
        "Filters of the waterworks are washed every third night.",
        "Fibre cables lie in the same trenches.",
        "Heat from the power station warms the swimming pool.",
        "The fleet is to be electric in five years.",
        "Engineers give talks in schools on request.",
    ),
    subjects=(
        "Reading of meters",
        "Works in the street",
        "The museum of pumps",
        "Swimming pool and heat",
        "Fitters and badges",
        "Old lamps",
        "Price gazette",
        "Fleet",
        "Control room",
        "Talks in schools",
        "Cables and trenches",
        "Filters",
        "Frost in pipes",
        "Trees and wires",
        "The gate",
        "The turbine hall as a stage",
    ),
    outside=(
        "a broken pipe in the street",
        "a claim for damages",
        "a letter from a lawyer",
        "an offer for solar panels",
        "a complaint about a fitter",
        "a job at the works",
    ),
)


class KnowledgeUtility(CompanyDomain):
    """The service desk of a utility."""

    name: ClassVar[str] = UTILITY.name
    policy: ClassVar[Path | str] = policy_of(UTILITY, "policy.md")
    trade: ClassVar[Trade] = UTILITY

    @tool
    def list_tariffs(self, customer_id: str) -> dict[str, Any]:
        """The customer's tariffs, without their details.

        customer_id: the customer
        """
        return self._held(customer_id)

    @tool
    def get_tariff(self, tariff_id: str) -> dict[str, Any]:
        """All details of a tariff.

        tariff_id: the tariff, such as 'T-12345'
        """
        return dict(self._contract(tariff_id))


SERVICE = service_of(UTILITY, KnowledgeUtility)
