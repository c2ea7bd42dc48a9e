"""MathAPI: a calculator (BFCL math_api, the same in both revisions).

Results are Python's own, rounding errors included: sums add from left to right on every version of Python. Logarithms
are mpmath's and square roots decimal's, with number contexts of their own, so that no call changes another's precision.

What would take unbounded time or memory is an error instead: whole numbers too long for Python to print (upstream
computes those and then fails to print them, with the same text), logarithms to more than ``MAX_DIGITS`` digits, square
roots to more digits unless they are exact, whole numbers of more than ``MAX_BITS`` bits and texts of more than
``MAX_TEXT`` characters where a search for digits would be slow.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import lru_cache
from typing import Any, Self

from muarl.domains.tooling import tool
from muarl_worlds.bfcl.api import Api, Revision
from muarl_worlds.bfcl.parts import named

__all__ = ["MAX_BITS", "MAX_DIGITS", "MAX_TEXT", "REVISIONS", "MathAPI"]

MAX_DIGITS = 10_000
"""The highest precision that is computed; some hundredths of a second for a logarithm."""

MAX_BITS = 20_000
"""How large a whole number may be whose digits matter; Python reads none of more than 4300 decimal digits (14,285
bits), so it can only have been written in hexadecimal or the like."""

MAX_TEXT = 500
"""How long a number given as text may be; ``logarithm`` takes those, with exponents of less than 20 digits."""

_PRINTED_BITS = 14_285
"""2 to this power has more than 4300 digits, the most that Python prints of a whole number."""

_UNPRINTABLE = (
    "Exceeds the limit (4300 digits) for integer string conversion; "
    "use sys.set_int_max_str_digits() to increase the limit"
)
_NOT_NUMBERS = {"error": "Both inputs must be numbers"}
_NOT_A_LIST = {"error": "All elements in the list must be numbers"}
_TOO_LARGE = {"error": "Conversion resulted in a value too large to represent"}
_NEVER_STORED = 10**15
"""Nothing has memory for so many digits; upstream's error has an empty text then."""

_METERS = {"km": 1000, "m": 1, "cm": 0.01, "mm": 0.001, "um": 1e-6, "nm": 1e-9}
_FACTORS = {
    "cm_to_in": 0.393701, "in_to_cm": 2.54, "m_to_ft": 3.28084, "ft_to_m": 0.3048, "m_to_yd": 1.09361,
    "yd_to_m": 0.9144, "km_to_miles": 0.621371, "miles_to_km": 1.60934, "kg_to_lb": 2.20462, "lb_to_kg": 0.453592,
    "celsius_to_fahrenheit": 1.8, "fahrenheit_to_celsius": 5 / 9,
}  # fmt: skip

_LONG_EXPONENT = re.compile(r"[eE][+-]?[\d_]{20}")
_logarithms = threading.Lock()  # mpmath keeps what it knows of log 2 in two steps, which threads must not interleave


@named
class MathAPI(Api):
    """The calculator. It has no state."""

    name = "MathAPI"
    stateless = True

    def copy(self) -> Self:
        return type(self)()

    @tool(kind="generic")
    def logarithm(self, value: float, base: float, precision: int) -> dict[str, Any]:
        """Compute a logarithm.

        value: the number whose logarithm is wanted.
        base: the base of the logarithm.
        precision: how many digits of the result are wanted.
        """
        try:
            _check_size(value, base)
            numbers = _numbers(precision, value, base)
            with _logarithms:
                return {"result": numbers.log(value) / numbers.log(base)}
        except Exception as error:
            return {"error": str(error)}

    @tool(kind="generic")
    def mean(self, numbers: list[float]) -> dict[str, Any]:
        """Compute the mean of numbers.

        numbers: the numbers.
        """
        if not numbers:
            return {"error": "Cannot calculate mean of an empty list"}
        try:
            return {"result": _sum(numbers) / len(numbers)}
        except TypeError:
            return dict(_NOT_A_LIST)

    @tool(kind="generic")
    def standard_deviation(self, numbers: list[float]) -> dict[str, Any]:
        """Compute the standard deviation of numbers, taken as the whole population.

        numbers: the numbers.
        """
        if not numbers:
            return {"error": "Cannot calculate standard deviation of an empty list"}
        try:
            mean = _sum(numbers) / len(numbers)
            return {"result": math.sqrt(_sum((x - mean) ** 2 for x in numbers) / len(numbers))}
        except TypeError:
            return dict(_NOT_A_LIST)

    @tool(kind="generic")
    def si_unit_conversion(self, value: float, unit_in: str, unit_out: str) -> dict[str, Any]:
        """Convert a length from one metric unit to another.

        value: the length.
        unit_in: its unit: km, m, cm, mm, um or nm.
        unit_out: the unit wanted, one of the same.
        """
        if not isinstance(value, (int, float)):
            return {"error": "Value must be a number"}
        if unit_in not in _METERS or unit_out not in _METERS:
            return {"error": f"Conversion from '{unit_in}' to '{unit_out}' is not supported"}
        try:
            return {"result": value * _METERS[unit_in] * (1 / _METERS[unit_out])}
        except OverflowError:
            return dict(_TOO_LARGE)

    @tool(kind="generic")
    def imperial_si_conversion(self, value: float, unit_in: str, unit_out: str) -> dict[str, Any]:
        """Convert between an imperial and a metric unit.

        value: what to convert.
        unit_in: its unit. The pairs are cm and in, m and ft, m and yd, km and miles, kg and lb, celsius and fahrenheit.
        unit_out: the unit wanted, the other of the pair.
        """
        if not isinstance(value, (int, float)):
            return {"error": "Value must be a number"}
        if unit_in == unit_out:
            return {"result": value}
        pair = f"{unit_in}_to_{unit_out}"
        if pair not in _FACTORS:
            return {"error": f"Conversion from '{unit_in}' to '{unit_out}' is not supported"}
        try:
            if pair == "celsius_to_fahrenheit":
                return {"result": value * _FACTORS[pair] + 32}
            if pair == "fahrenheit_to_celsius":
                return {"result": (value - 32) * _FACTORS[pair]}
            return {"result": value * _FACTORS[pair]}
        except OverflowError:
            return dict(_TOO_LARGE)

    @tool(kind="generic")
    def add(self, a: float, b: float) -> dict[str, Any]:
        """Add two numbers.

        a: the first number.
        b: the second number.
        """
        try:
            return {"result": a + b}
        except TypeError:
            return dict(_NOT_NUMBERS)

    @tool(kind="generic")
    def subtract(self, a: float, b: float) -> dict[str, Any]:
        """Subtract one number from another.

        a: the number to subtract from.
        b: the number to subtract.
        """
        try:
            return {"result": a - b}
        except TypeError:
            return dict(_NOT_NUMBERS)

    @tool(kind="generic")
    def multiply(self, a: float, b: float) -> dict[str, Any]:
        """Multiply two numbers.

        a: the first number.
        b: the second number.
        """
        if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
            return dict(_NOT_NUMBERS)
        if isinstance(a, int) and isinstance(b, int) and a and b:
            _check_printable(a.bit_length() + b.bit_length() - 2)
        return {"result": a * b}

    @tool(kind="generic")
    def divide(self, a: float, b: float) -> dict[str, Any]:
        """Divide one number by another.

        a: the number to divide.
        b: the number to divide by.
        """
        try:
            return {"error": "Cannot divide by zero"} if b == 0 else {"result": a / b}
        except TypeError:
            return dict(_NOT_NUMBERS)

    @tool(kind="generic")
    def power(self, base: float, exponent: float) -> dict[str, Any]:
        """Raise a number to a power.

        base: the number.
        exponent: the power.
        """
        if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
            _check_printable((base.bit_length() - 1) * exponent)
        try:
            return {"result": base**exponent}
        except TypeError:
            return dict(_NOT_NUMBERS)

    @tool(kind="generic")
    def square_root(self, number: float, precision: int) -> dict[str, Any]:
        """Compute a square root.

        number: the number whose root is wanted.
        precision: how many digits of the result are wanted.
        """
        try:
            if number < 0:
                return {"error": "Cannot calculate square root of a negative number"}
            _check_size(number)
            return {"result": _square_root(number, precision)}
        except (TypeError, InvalidOperation):
            return {"error": "Input must be a number or computation resulted in an invalid operation"}

    @tool(kind="generic")
    def absolute_value(self, number: float) -> dict[str, Any]:
        """Compute the absolute value of a number.

        number: the number.
        """
        try:
            return {"result": abs(number)}
        except TypeError:
            return {"error": "Input must be a number"}

    @tool(kind="generic")
    def round_number(self, number: float, decimal_places: int = 0) -> dict[str, Any]:
        """Round a number.

        number: the number.
        decimal_places: how many decimal places to keep.
        """
        if isinstance(number, int) and isinstance(decimal_places, int) and decimal_places < 0:
            _check_size(number)
            if -decimal_places > number.bit_length() // 3 + 1:  # more than its digits
                return {"result": 0}
        try:
            return {"result": round(number, decimal_places)}
        except TypeError:
            return {"error": "First input must be a number, second input must be an integer"}

    @tool(kind="generic")
    def percentage(self, part: float, whole: float) -> dict[str, Any]:
        """Compute how many percent of a whole a part is.

        part: the part.
        whole: the whole.
        """
        try:
            return {"error": "Whole value cannot be zero"} if whole == 0 else {"result": (part / whole) * 100}
        except TypeError:
            return dict(_NOT_NUMBERS)

    @tool(kind="generic")
    def min_value(self, numbers: list[float]) -> dict[str, Any]:
        """Find the smallest of numbers.

        numbers: the numbers.
        """
        if not numbers:
            return {"error": "Cannot find minimum of an empty list"}
        try:
            return {"result": min(numbers)}
        except TypeError:
            return dict(_NOT_A_LIST)

    @tool(kind="generic")
    def max_value(self, numbers: list[float]) -> dict[str, Any]:
        """Find the largest of numbers.

        numbers: the numbers.
        """
        if not numbers:
            return {"error": "Cannot find maximum of an empty list"}
        try:
            return {"result": max(numbers)}
        except TypeError:
            return dict(_NOT_A_LIST)

    @tool(kind="generic")
    def sum_values(self, numbers: list[float]) -> dict[str, Any]:
        """Add up numbers.

        numbers: the numbers.
        """
        if not numbers:
            return {"error": "Cannot calculate sum of an empty list"}
        try:
            return {"result": _sum(numbers)}
        except TypeError:
            return dict(_NOT_A_LIST)


def _sum(numbers: Iterable[Any]) -> Any:
    """The sum as Python 3.11 adds up: from 3.12 on, ``sum`` makes up for the rounding errors of floats."""
    total: Any = 0
    for number in numbers:
        total = total + number
    return total


def _check_printable(bits: int) -> None:
    if bits >= _PRINTED_BITS:
        raise ValueError(_UNPRINTABLE)


def _check_size(*numbers: Any) -> None:
    for number in numbers:
        if isinstance(number, int) and number.bit_length() > MAX_BITS:
            raise ValueError(f"the number is too large: more than {MAX_BITS} bits")
        if isinstance(number, str) and len(number) > MAX_TEXT:
            raise ValueError(f"the number is too long: more than {MAX_TEXT} characters")
        if isinstance(number, str) and _LONG_EXPONENT.search(number):
            raise ValueError("the exponent is too large")


def _numbers(precision: Any, *values: Any) -> Any:
    """mpmath's numbers of so many decimal digits. What it raises for what is no precision passes through, and if there
    are too many digits, for the first of the values that is no number."""
    from mpmath.libmp import dps_to_prec  # type: ignore[import-untyped]

    bits = dps_to_prec(precision)
    if bits > dps_to_prec(MAX_DIGITS):
        for value in values:
            _of_bits(53).convert(value)
        raise ValueError("too many digits in integer")  # upstream's text, where it does not run out of time
    return _of_bits(bits)


@lru_cache(maxsize=64)
def _of_bits(bits: int) -> Any:
    """A number context of mpmath's; never changed, and so shared by all who want this precision."""
    from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]

    numbers = MPContext()
    numbers.prec = bits
    return numbers


def _square_root(number: Any, precision: Any) -> Decimal:
    context = Context()
    context.prec = precision  # raises what is wrong with it
    if precision <= MAX_DIGITS:
        return context.sqrt(Decimal(number))
    context.prec = MAX_DIGITS
    root = context.sqrt(Decimal(number))
    if context.flags[Inexact]:
        raise RuntimeError("" if precision >= _NEVER_STORED else f"the precision is more than {MAX_DIGITS} digits")
    return root


REVISIONS: Mapping[Revision, type[Api]] = {"v3": MathAPI, "v4": MathAPI}
