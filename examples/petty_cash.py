"""A cash box whose agent needs a colleague's approval above $50 (docs/kit.md, "What agents may not do alone").

muarl domains check examples/petty_cash.py:PETTY
"""

from muarl import tool
from muarl.kit import ApprovalDomain, Colleague, Limit, Maker, Plan, Service, Slot, environment, intent, pattern, rows


class Petty(ApprovalDomain):
    """A cash box, out of which receipts are paid."""

    name = "petty"
    policy = "Pay receipts out of the cash box, each once. Say what you will pay, and wait for a yes."
    colleague = Colleague("the bookkeeper", declines=0.3, because=("there is no cash left", "the month is closed"))

    @tool
    def get_receipt(self, receipt_id: str) -> dict:
        """A receipt, such as 'RC-1042'."""
        if receipt_id not in self.db.receipts:
            raise ValueError(f"there is no receipt {receipt_id}")
        return self.db.receipts[receipt_id]

    @tool(writes=True)
    def pay_receipt(self, receipt_id: str) -> dict:
        """Pay a receipt out."""
        receipt = self.db.receipts[receipt_id]
        receipt["paid"] = True
        return receipt


def receipts(make: Maker) -> dict:
    ids = [make.id("receipt", "RC-", 4) for _ in range(6)]
    amounts = {one: make.rng.choice((12.5, 30.0, 80.0, 140.0)) for one in ids}
    return {"receipts": {one: {"receipt_id": one, "amount": amounts[one], "paid": False} for one in ids}}


RECEIPT = Slot("receipt", pattern(r"RC-\d{4}"), ask="Which receipt is it?", draw=rows("receipts", "receipt_id"))


@intent(says=("have receipt {receipt} paid", "have a receipt paid"), slots=[RECEIPT])
def pay_receipt(it: Plan) -> None:
    it.r = it.look("get_receipt", receipt_id=it.receipt)
    it.refuse_if(it.r.paid, "receipt {receipt} has been paid")
    propose = "pay {r.amount|money} for receipt {receipt}"
    it.write("pay_receipt", receipt_id=it.receipt, propose=propose, done="It is paid.")


PETTY = environment(
    Service(
        domain=Petty,
        about="a cash box",
        today="2026-03-14",
        intents=(pay_receipt,),
        tables=receipts,
        limits=(Limit("pay_receipt", record="receipt", amount="r.amount", above=50, reason="Receipt {receipt}."),),
    )
)
