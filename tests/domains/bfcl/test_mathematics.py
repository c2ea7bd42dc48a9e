"""MathAPI: the original's results to the last digit, on every Python, and in bounded time."""

from __future__ import annotations

import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.domains.tooling import tools_of
from muarl_worlds.bfcl.mathematics import MAX_DIGITS, REVISIONS, MathAPI
from support.bfcl import answer
from support.waiting import in_threads

TOOLS = {
    "logarithm", "mean", "standard_deviation", "si_unit_conversion", "imperial_si_conversion", "add", "subtract",
    "multiply", "divide", "power", "square_root", "absolute_value", "round_number", "percentage", "min_value",
    "max_value", "sum_values",
}  # fmt: skip
NUMBERS = "Both inputs must be numbers"
UNPRINTABLE = (
    "Error during execution: Exceeds the limit (4300 digits) for integer string conversion; "
    "use sys.set_int_max_str_digits() to increase the limit"
)


@pytest.fixture
def api():
    return MathAPI()


def test_both_revisions_have_the_official_tools_and_no_state():
    for kind in REVISIONS.values():
        assert set(tools_of(kind)) == TOOLS and kind.stateless and kind.name == "MathAPI"
        assert {tool.kind for tool in tools_of(kind).values()} == {"generic"}
        assert kind().state() == kind().copy().state() == {}


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("add", (1, 2), '{"result": 3}'),
        ("add", (0.1, 0.2), '{"result": 0.30000000000000004}'),
        ("add", ("a", "b"), '{"result": "ab"}'),
        ("add", ("a", 1), f'{{"error": "{NUMBERS}"}}'),
        ("subtract", (5, 2.5), '{"result": 2.5}'),
        ("multiply", (True, 3), '{"result": 3}'),
        ("multiply", ("a", 3), f'{{"error": "{NUMBERS}"}}'),
        ("divide", (1, 3), '{"result": 0.3333333333333333}'),
        ("divide", (1, 0), '{"error": "Cannot divide by zero"}'),
        ("divide", (1, None), f'{{"error": "{NUMBERS}"}}'),
        ("divide", (10**400, 3), "Error during execution: integer division result too large for a float"),
        ("power", (2, 10), '{"result": 1024}'),
        ("power", (2, -1), '{"result": 0.5}'),
        ("power", (0, -1), "Error during execution: 0.0 cannot be raised to a negative power"),
        ("power", (-8, 0.5), "{'result': (1.7319121124709868e-16+2.8284271247461903j)}"),
        ("power", (1.5, 10**9), "Error during execution: (34, 'Numerical result out of range')"),
        ("percentage", (1, 8), '{"result": 12.5}'),
        ("percentage", (1, 0.0), '{"error": "Whole value cannot be zero"}'),
        ("absolute_value", (-3,), '{"result": 3}'),
        ("absolute_value", ("x",), '{"error": "Input must be a number"}'),
        ("round_number", (2.5,), '{"result": 2.0}'),
        ("round_number", (2.675, 2), '{"result": 2.67}'),
        ("round_number", (12345, -3), '{"result": 12000}'),
        ("round_number", (95, -2), '{"result": 100}'),
        ("round_number", (2.5, None), '{"result": 2}'),
        ("round_number", (1, 2.0), '{"error": "First input must be a number, second input must be an integer"}'),
        ("min_value", ([3, 1.0, 2],), '{"result": 1.0}'),
        ("max_value", ("abc",), '{"result": "c"}'),
        ("max_value", ([1, "a"],), '{"error": "All elements in the list must be numbers"}'),
        ("max_value", ([],), '{"error": "Cannot find maximum of an empty list"}'),
        ("sum_values", (5,), '{"error": "All elements in the list must be numbers"}'),
        ("mean", (["a"],), '{"error": "All elements in the list must be numbers"}'),
        ("mean", ([],), '{"error": "Cannot calculate mean of an empty list"}'),
        ("standard_deviation", ([2, 4, 4, 4, 5, 5, 7, 9],), '{"result": 2.0}'),
        ("si_unit_conversion", (1, "km", "m"), '{"result": 1000.0}'),
        ("si_unit_conversion", (3, "m", "cm"), '{"result": 300.0}'),
        ("si_unit_conversion", (7, "nm", "um"), '{"result": 0.007000000000000001}'),
        ("si_unit_conversion", (1, "km", "ft"), "{\"error\": \"Conversion from 'km' to 'ft' is not supported\"}"),
        ("si_unit_conversion", ("1", "km", "m"), '{"error": "Value must be a number"}'),
        ("si_unit_conversion", (1, ["km"], "m"), "Error during execution: unhashable type: 'list'"),
        (
            "si_unit_conversion", (10**400, "cm", "m"),
            '{"error": "Conversion resulted in a value too large to represent"}',
        ),
        ("imperial_si_conversion", (100, "celsius", "fahrenheit"), '{"result": 212.0}'),
        ("imperial_si_conversion", (100, "fahrenheit", "celsius"), '{"result": 37.77777777777778}'),
        ("imperial_si_conversion", (2, "kg", "lb"), '{"result": 4.40924}'),
        ("imperial_si_conversion", (2, "x", "x"), '{"result": 2}'),
        ("logarithm", (10, 2, 5), "{'result': mpf('3.3219299')}"),
        ("logarithm", (8, 2, 15), "{'result': mpf('3.0')}"),
        ("logarithm", (0, 2, 5), "{'result': mpf('-inf')}"),
        ("logarithm", (-1, 2, 3), "{'result': mpc(real='0.0', imag='4.53223')}"),
        ("logarithm", ("1/4", "2", "3"), "{'result': mpf('-2.0')}"),
        ("logarithm", (8, 1, 5), '{"error": ""}'),
        ("logarithm", (8, 2, None), (
            '{"error": "int() argument must be a string, a bytes-like object or a real number, not \'NoneType\'"}'
        )),
        ("logarithm", ([8], 2, 5), '{"error": "cannot create mpf from [8]"}'),
        ("square_root", (2, 5), "{'result': Decimal('1.4142')}"),
        ("square_root", (16, 5), "{'result': Decimal('4')}"),
        ("square_root", (0.1, 3), "{'result': Decimal('0.316')}"),
        ("square_root", (-1, 5), '{"error": "Cannot calculate square root of a negative number"}'),
        ("square_root", ("4", 5), (
            '{"error": "Input must be a number or computation resulted in an invalid operation"}'
        )),
        ("square_root", (4, 0), "Error during execution: valid range for prec is [1, MAX_PREC]"),
        ("add", (), "Error during execution: MathAPI.add() missing 2 required positional arguments: 'a' and 'b'"),
    ],
)  # fmt: skip
def test_answers(api, name, arguments, shown):
    assert answer(api, name, *arguments) == shown


def test_sums_add_from_left_to_right_as_python_3_11_did(api):
    assert api.sum_values([0.1] * 10) == {"result": 0.9999999999999999}
    assert api.mean([0.1] * 10) == {"result": 0.09999999999999999}
    assert api.standard_deviation([0.1, 0.2, 0.3, 0.4])["result"] == 0.11180339887498948
    assert api.sum_values([1e100, 1.0, -1e100]) == {"result": 0.0}


def added(numbers):
    total = 0
    for number in numbers:
        total = total + number
    return total


@given(st.lists(st.one_of(st.floats(), st.integers(), st.booleans()), min_size=1, max_size=20))
def test_a_sum_is_that_of_a_loop(numbers):
    try:
        expected = repr({"result": added(numbers)})
    except OverflowError as error:
        with pytest.raises(OverflowError, match=str(error)):
            MathAPI().sum_values(numbers)
    else:
        assert repr(MathAPI().sum_values(numbers)) == expected


@given(st.integers(), st.integers(-60, 5))
def test_rounding_whole_numbers_is_pythons(number, places):
    assert MathAPI().round_number(number, places) == {"result": round(number, places)}


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("power", (10**9, 10**9), UNPRINTABLE),
        ("power", (9, 9**9), UNPRINTABLE),
        ("power", (-3, 10**4000), UNPRINTABLE),
        ("power", (10, 4300), UNPRINTABLE),
        ("power", (1, 10**4000), '{"result": 1}'),
        ("power", (-1, 10**4000 + 1), '{"result": -1}'),
        ("power", (2, -(10**9)), '{"result": 0.0}'),
        ("multiply", (1 << 40_000_000, 1 << 40_000_000), UNPRINTABLE),
        ("multiply", (0, 1 << 4_000_000), '{"result": 0}'),
        ("add", (1 << 4_000_000, 1), UNPRINTABLE),
        ("round_number", (5, -(10**9)), '{"result": 0}'),
        ("round_number", (10**4200, -(10**9)), '{"result": 0}'),
        ("logarithm", (2, 10, MAX_DIGITS + 1), '{"error": "too many digits in integer"}'),
        ("logarithm", (2, "TSLA", MAX_DIGITS + 1), '{"error": "cannot create mpf from \'TSLA\'"}'),
        ("logarithm", (2, 10, 10**9), '{"error": "too many digits in integer"}'),
        ("logarithm", (2, 10, 10**400), '{"error": "int too large to convert to float"}'),
        ("logarithm", (1 << 4_000_000, 10, 5), '{"error": "the number is too large: more than 20000 bits"}'),
        ("logarithm", ("1e" + "9" * 400, 10, 5), '{"error": "the exponent is too large"}'),
        ("logarithm", ("1" * 100_000 + "j", 10, 5), '{"error": "the number is too long: more than 500 characters"}'),
        ("square_root", (2, 10**9), "Error during execution: the precision is more than 10000 digits"),
        ("square_root", (16, 10**9), "{'result': Decimal('4')}"),
        ("square_root", (2, 10**17), "Error during execution: "),
        ("square_root", (16, 10**17), "{'result': Decimal('4')}"),
        ("square_root", (2, 10**18), "Error during execution: valid range for prec is [1, MAX_PREC]"),
        ("square_root", (1 << 4_000_000, 5), "Error during execution: the number is too large: more than 20000 bits"),
    ],
)
def test_what_would_never_end_is_an_error_at_once(api, name, arguments, shown):
    assert answer(api, name, *arguments) == shown


def test_the_largest_printable_results_are_exact(api):
    assert api.power(10, 4299) == {"result": 10**4299}
    assert api.multiply(10**2000, 10**2299) == {"result": 10**4299}
    assert len(str(api.logarithm(2, 10, MAX_DIGITS)["result"])) > MAX_DIGITS
    assert len(str(api.square_root(2, MAX_DIGITS)["result"])) == MAX_DIGITS + 1


def test_a_precision_is_that_of_its_call_alone():
    mpmath = pytest.importorskip("mpmath")
    before = mpmath.mp.dps, decimal.getcontext().prec
    one, other = MathAPI(), MathAPI()
    short = one.logarithm(10, 2, 5)
    other.logarithm(10, 2, 30)
    assert str(short) == "{'result': mpf('3.3219299')}"
    one.square_root(2, 3)
    assert (mpmath.mp.dps, decimal.getcontext().prec) == before


def test_threads_do_not_disturb_each_other():
    wanted = {digits: str(MathAPI().logarithm(7, 3, digits)) for digits in range(1, 60)}
    wrong = []

    def work(start):
        api = MathAPI()
        for i in range(200):
            digits = 1 + (start + i) % 59
            if str(api.logarithm(7, 3, digits)) != wanted[digits]:
                wrong.append(digits)

    in_threads(lambda number: work(7 * number))
    assert wrong == []
