"""Texts made to hang, flood or crash whoever reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.basics.errors import DataError
from muarl.basics.untrusted import (
    DEPTH,
    YAML_BYTES,
    YAML_DEPTH,
    levels,
    parse_json,
    parse_yaml,
    read_json,
    read_json_object,
    read_yaml,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='[]{}"\\,: a\n', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='[{"\\', max_size=3), inner, max_size=3)
    ),
)


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


@given(values)
def test_levels_are_counted_without_those_in_strings(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert levels(text) == levels(text.encode()) == depth_of(value)
        assert parse_json(text) == value


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":[', '{"a\\"]}":['])
def test_json_of_any_depth_is_a_value_error(opening: str) -> None:
    for text in (opening * 20_000, opening * 20_000 + "]" * 20_000):
        with pytest.raises(ValueError, match="deeper than 100 levels"):
            parse_json(text)


def test_the_deepest_json_that_is_read() -> None:
    assert levels("[" * DEPTH + "]" * DEPTH) == DEPTH
    parse_json("[" * DEPTH + "]" * DEPTH)
    with pytest.raises(ValueError, match="deeper than 3 levels"):
        parse_json("[[[[]]]]", depth=3)


def test_json_with_a_number_of_thousands_of_digits_says_so() -> None:
    with pytest.raises(ValueError, match="thousands of digits$"):
        parse_json("9" * 5000)


@pytest.mark.parametrize("text", ["", "{", '{"a": 1,}', "nope", '"\\', b"\xff", "[1]".encode("utf-16")])
def test_json_that_is_none_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


def test_a_json_file_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "status.json"
    for content, words in (
        (b"[" * 5000, "status.json: is not valid JSON: nested deeper"),
        (b"{", "status.json: is not valid JSON: "),
        (b"\xff\xfe{}", "status.json: is not UTF-8"),
        (b'{"a": "' + b"x" * 3000 + b'"}', "status.json: is larger than 2 KiB"),
    ):
        file.write_bytes(content)
        with pytest.raises(DataError, match=words):
            read_json(file, most=2048 if b"xx" in content else 1 << 20)
    file.write_text("[1]")
    with pytest.raises(DataError, match="must hold a JSON object, and holds a list"):
        read_json_object(file)
    with pytest.raises(DataError, match="nosuch.json: cannot be read: No such file"):
        read_json(tmp_path / "nosuch.json")


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "line 2, column 8: .a is an alias; write the value out"),
        ("a: &a [*a]\n", "line 1, column 8: .a is an alias"),
        ("a: &a {b: *a}\n", "is an alias"),
        ("a: 1" + ":59" * 5000 + ".0", "not valid YAML"),
        ('a: "\\UFFFFFFFF"', "not valid YAML"),
        ("x: 1\nbase: &b {y: 1}\nz:\n  <<: *b\n", "line 4, column 7: .b is an alias"),
        ("[" * 100_000, f"deeper than {YAML_DEPTH} levels"),
        ("{a: " * 10_000, f"deeper than {YAML_DEPTH} levels"),
        ("- " * 10_000, f"deeper than {YAML_DEPTH} levels"),
        ("\n".join(" " * n + "a:" for n in range(300)), f"line 40, column 40: nested deeper than {YAML_DEPTH} levels"),
        ("? [a]\n: b\n", "line 1, column 3: a key must be a single value"),
        ("{[a]: b}", "a key must be a single value"),
        ("? {a: 1}\n: b\n", "a key must be a single value"),
        ("a: 1\nb: 2\na: 3\n", "line 3, column 1: the key 'a' occurs twice"),
        ("seed: " + "9" * 5000, "line 1, column 7: a whole number of more than 64 bits"),
        ("seed: 0x" + "f" * 5000, "a whole number of more than 64 bits"),
        ("seed: 36893488147419103232", "a whole number of more than 64 bits"),
        ("seed: " + "1:" * 5000 + "1", "a whole number of more than 64 bits"),
        ("a: !!python/object/apply:os.system [ls]", "line 1, column 4: .*os.system is a tag"),
        ("a: !!bool maybe", "is a tag"),
        ("a: !!timestamp 2020-13-45", "is a tag"),
        ("a: [" + "1," * 60_000 + "]", "more than 50000 values"),
        ("a: " + "x" * (YAML_BYTES + 1), "more than 256 KiB"),
        ("a: [1", "line 1"),
        ("a: \x00", "not valid YAML"),
        ("a: 1\n---\nb: 2\n", "line 2"),
    ],
)  # fmt: skip
def test_yaml_that_would_hang_or_crash_its_reader_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_yaml(text)


@pytest.mark.parametrize("text", ["a: 2020-13-45", "a: 2020-12-25", "a: 0b", "a: 0o9", "a: =", "a: <<"])
def test_what_only_looks_like_a_date_or_number_stays_text(text: str) -> None:
    assert parse_yaml(text) == {"a": text.partition(": ")[2]}


def test_plain_yaml_is_read_as_ever() -> None:
    text = "a: {b: [1, 2.5, -0x1f, true, null, 'x', \"*y\"]}\nc: |\n  &d *e\nf: 1_000\n3: x\n# *g\n"
    expected = {"a": {"b": [1, 2.5, -31, True, None, "x", "*y"]}, "c": "&d *e\n", "f": 1000, 3: "x"}
    assert parse_yaml(text) == expected
    assert parse_yaml("") is None and parse_yaml("- 18446744073709551615") == [(1 << 64) - 1]


def test_a_yaml_file_is_refused_by_name_and_line(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(BOMB)
    with pytest.raises(DataError, match=r"config.yaml: line 2, column 8: \*a is an alias"):
        read_yaml(file)
    file.write_text("a: &anchor 1\n")  # an anchor without an alias is harmless
    assert read_yaml(file) == {"a": 1}
