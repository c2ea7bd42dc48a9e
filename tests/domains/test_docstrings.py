"""What docstrings say of a tool and its parameters, in every style that is read."""

from __future__ import annotations

import pytest

from muarl.domains.docstrings import parse_docstring


def test_google_docstrings_keep_the_lines_of_long_descriptions():
    description, parameters = parse_docstring(
        """Do a thing. It takes
        two lines.

        And a paragraph.

        Args:
            first: What comes first,
                on two lines.
            second (int): The other: with a colon.

        Returns:
            Nothing: at all.
        """
    )
    assert description == "Do a thing. It takes\n\ntwo lines.\n\nAnd a paragraph."
    assert parameters == {"first": "What comes first,\non two lines.", "second": "The other: with a colon."}


def test_plain_docstrings_name_their_parameters_on_lines_of_their_own():
    assert parse_docstring("Refund it.\n\n    order_id: the order,\n        such as '1'.\n    amount: how much.\n") == (
        "Refund it.",
        {"order_id": "the order,\nsuch as '1'.", "amount": "how much."},
    )
    assert parse_docstring("") == ("", {})


@pytest.mark.parametrize(
    "text",
    [
        "Refund it.\n\nAll of it.\n\n:param order_id: the order,\n    such as '1'.\n:type order_id: str\n"
        ":param float amount: how much.\n:returns: the order.\n:raises ValueError: never.\n",
        "Refund it.\n\nAll of it.\n\n@param order_id: the order,\n    such as '1'.\n@param amount: how much.",
        "Refund it.\n\nAll of it.\n\nParameters\n----------\norder_id : str\n    the order,\n    such as '1'.\n"
        "amount\n    how much.\n\nReturns\n-------\ndict\n    The order: all of it.\n",
    ],
)
def test_docstrings_of_other_styles_are_read_too(text: str) -> None:
    description, parameters = parse_docstring(text)
    assert description == "Refund it.\n\nAll of it."
    assert parameters == {"order_id": "the order,\nsuch as '1'.", "amount": "how much."}


def test_a_docstring_may_consist_of_fields_alone() -> None:
    assert parse_docstring(":param a: one.\n\n:return: it") == ("", {"a": "one."})
