"""An insurer: home, motor and travel policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.tooling import tool
from muarl_worlds.companies.services import service_of
from muarl_worlds.companies.tools import CompanyDomain, policy_of
from muarl_worlds.companies.trades import Operation, Topic, Trade

INSURER = Trade(
    name="insurer-knowledge",
    company="insurer",
    contract="policy",
    contracts="policies",
    prefix="P-",
    places=(
        "Northmoor",
        "Ravenhill",
        "Stonebeck",
        "Elmswick",
        "Fallowby",
        "Grimsdale",
        "Holtworth",
        "Inglecross",
        "Kirkvale",
        "Lowestone",
        "Middlefen",
        "Oakenshaw",
    ),
    endings=("Assurance", "Mutual Insurance", "Insurance Company", "Insurance Union", "Provident"),
    brands=(
        "Anchor",
        "Beacon",
        "Citadel",
        "Drawbridge",
        "Falcon",
        "Granite",
        "Harbour",
        "Lantern",
        "Meridian",
        "Northstar",
        "Orchard",
        "Parasol",
        "Rampart",
        "Shelter",
        "Umbrella",
    ),
    families={"Home": "home policies", "Motor": "motor policies", "Travel": "travel policies"},
    tiers=("Light", "Classic", "Complete", "Family"),
    groups=("teachers", "nurses", "farmers", "drivers under 25"),
    topics=(
        Topic(
            "cancellation fee",
            "dollars",
            "charges",
            range(15, 100, 5),
            wordings=("cancellation fee", "fee for cancelling"),
        ),
        Topic(
            "reissue fee",
            "dollars",
            "charges",
            range(15, 100, 5),
            wordings=("reissue fee", "fee for a new certificate"),
        ),
        Topic("suspension fee", "dollars", "charges", range(15, 100, 5), optional=True, wordings=("suspension fee",)),
        Topic("reminder fee", "dollars", "charges", range(11, 49), wordings=("reminder fee", "fee for a reminder")),
        Topic(
            "highest cover",
            "dollars",
            "cover and periods",
            range(8000, 60000, 2000),
            wordings=("highest cover", "most that can be covered"),
        ),
        Topic(
            "reporting period",
            "days",
            "cover and periods",
            range(14, 124, 10),
            wordings=("reporting period", "time for reporting a loss"),
        ),
        Topic("qualifying period", "days", "cover and periods", range(30, 365, 15), wordings=("qualifying period",)),
        Topic("permitted switch", "product", "switches", optional=True),
    ),
    operations=(
        Operation(
            name="cancel",
            kind="charge",
            topic="cancellation fee",
            title="cancelling {family} policies",
            stem="cancel_policy",
            code="CN",
            field="status",
            becomes="cancelled",
            share=1.4,
            says=("cancel {contract}", "have {contract} cancelled", "cancel one of my policies", "cancel a policy"),
            heard=r"\bcancel (?:policy|my|one|a\b)|\bcancelled\b",
            because=("We have sold it.", "I am insured twice, it seems."),
            doing="cancelling a policy",
            propose=(
                "cancel policy {contract} for a cancellation fee of ${fee}",
                "cancel {contract}, your {product}; the cancellation fee is ${fee}",
            ),
            done=("Policy {contract} is cancelled.", "Done, policy {contract} has been cancelled."),
        ),
        Operation(
            name="reissue",
            kind="charge",
            topic="reissue fee",
            title="reissuing certificates of {family} policies",
            stem="reissue_certificate",
            code="RC",
            field="certificate",
            becomes="sent",
            share=1.4,
            says=(
                "get a new certificate for {contract}",
                "order another certificate for {contract}",
                "get a new certificate",
            ),
            heard=r"\b(?:get|order|need|have) (?:a new|another|me a new) certificate",
            because=("Ours fell victim to the dog.", "The authorities want to see it."),
            doing="reissuing a certificate",
            propose=(
                "send a new certificate for policy {contract} for a reissue fee of ${fee}",
                "send you a new certificate for {contract}, your {product}; the reissue fee is ${fee}",
            ),
            done=(
                "A new certificate for {contract} is on its way.",
                "Done, the certificate for {contract} has been sent.",
            ),
        ),
        Operation(
            name="suspend",
            kind="charge",
            topic="suspension fee",
            title="suspending {family} policies",
            stem="suspend_policy",
            code="SU",
            field="status",
            becomes="suspended",
            says=("suspend {contract}", "have {contract} suspended for some months", "suspend one of my policies"),
            heard=r"\bsuspend (?:policy|my|one|a\b)|\bsuspended\b",
            because=("The car stays in the garage this winter.", "We are away until the autumn."),
            doing="suspending a policy",
            propose=(
                "suspend policy {contract} for a suspension fee of ${fee}",
                "suspend {contract}, your {product}; the suspension fee is ${fee}",
            ),
            done=("Policy {contract} is suspended.", "Done, policy {contract} has been suspended."),
        ),
        Operation(
            name="set_cover",
            kind="amount",
            topic="highest cover",
            title="setting the cover of {family} policies",
            stem="set_cover",
            code="CV",
            field="cover",
            becomes=None,
            says=(
                "set the cover of {contract} to {amount}",
                "have a cover of {amount} on {contract}",
                "change the cover of {contract}",
                "change the cover of a policy",
            ),
            heard=r"\b(?:set|change|have|raise) (?:the|a) cover",
            because=("We have bought new furniture.", "Prices have gone up so much."),
            doing="setting the cover",
            propose=(
                "set the cover of policy {contract} to {amount}",
                "set the cover of {contract}, your {product}, to {amount}",
            ),
            done=(
                "The cover of {contract} is {amount} now.",
                "Done, the cover of {contract} has been set to {amount}.",
            ),
        ),
        Operation(
            name="add_glass",
            kind="wait",
            topic="qualifying period",
            title="adding glass cover to {family} policies",
            stem="add_glass_cover",
            code="GL",
            field="glass",
            becomes="covered",
            says=("add glass cover to {contract}", "have glass covered by {contract}", "add glass cover"),
            heard=r"\bglass",
            because=("The neighbours' boys play football.", "Our windows are rather large."),
            doing="adding glass cover",
            propose=("add glass cover to policy {contract}", "add the glass cover to {contract}, your {product}"),
            done=("Glass is covered by {contract} now.", "Done, glass cover has been added to policy {contract}."),
        ),
        Operation(
            name="switch_product",
            kind="switch",
            topic="permitted switch",
            title="switching {family} policies",
            stem="switch_policy",
            code="SW",
            field="product",
            becomes=None,
            says=(
                "turn {contract} into {target}",
                "switch {contract} to {target}",
                "turn {contract} into another product",
                "switch the product of a policy",
            ),
            heard=r"\bturn (?:policy|my)|\bswitch (?:policy|my|the product)",
            because=("We need less than we used to.", "My sister has it and is content."),
            doing="switching the product",
            propose=("turn policy {contract} into {target}", "switch {contract} from {product} to {target}"),
            done=("Policy {contract} is {target} now.", "Done, {contract} has become {target}."),
        ),
    ),
    tiny_operations=("cancel", "reissue", "suspend"),
    remarks=(
        "Premiums are collected on the first of the month.",
        "Our agents visit customers at home if they wish.",
        "The wording follows the model conditions of the association.",
        "Losses abroad are handled by partners on the spot.",
        "Photographs may be sent in by any usual means.",
        "Every file is read by a second pair of eyes.",
        "The arbitration board meets four times a year.",
        "Reinsurance is arranged by the head office.",
        "Garages of our network lend a bicycle in the meantime.",
        "Certificates are printed on paper with a watermark.",
        "A loss is best reported by telephone, with the policy at hand.",
        "Storm warnings are sent to all who asked for them.",
        "Experts are chosen by lot among those who are free.",
        "The office was moved twice because of floods.",
        "Premium notices of one household may share an envelope.",
        "Figures of past years are kept by the actuaries.",
    ),
    subjects=(
        "Storm warnings",
        "The canteen",
        "Experts and their fees",
        "Agents in the countryside",
        "Winter tyres",
        "Burglary statistics",
        "The founders' portrait",
        "Bicycles for employees",
        "Handling of photographs",
        "Visits at home",
        "Translations",
        "Archive of closed files",
        "Reinsurance",
        "Fire drills",
        "Letters to the editor",
        "Meetings of the arbitration board",
    ),
    outside=(
        "an accident in which somebody was hurt",
        "a letter from a lawyer",
        "life insurance",
        "a fraud that I have seen",
        "a complaint about an agent",
        "a job at the insurer",
    ),
)


class KnowledgeInsurer(CompanyDomain):
    """The service desk of an insurer."""

    name: ClassVar[str] = INSURER.name
    policy: ClassVar[Path | str] = policy_of(INSURER, "policy.md")
    trade: ClassVar[Trade] = INSURER

    @tool
    def list_policies(self, customer_id: str) -> dict[str, Any]:
        """The customer's policies, without their details.

        customer_id: the customer
        """
        return self._held(customer_id)

    @tool
    def get_policy(self, policy_id: str) -> dict[str, Any]:
        """All details of a policy.

        policy_id: the policy, such as 'P-12345'
        """
        return dict(self._contract(policy_id))


SERVICE = service_of(INSURER, KnowledgeInsurer)
