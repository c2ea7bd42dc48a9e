"""Call strings: what BFCL's ``eval`` gives for them, without it, and nothing that takes long or reaches outside.

The expected texts are those of the original code under Python 3.11.
"""

from __future__ import annotations

import ast
import json
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl_worlds.bfcl.calls import MAX_LENGTH, argument_values, call_text, literal_call, parse
from muarl_worlds.bfcl.environment import Instances, load_apis, tool_names
from muarl_worlds.bfcl.expressions import MAX_WEIGHT, weight
from support.waiting import in_threads

FILES = {"docs": {"type": "directory", "contents": {}}, "a.txt": {"type": "file", "content": "x"}}
CONFIG = {"GorillaFileSystem": {"root": {"home": {"type": "directory", "contents": FILES}}}}
CLASSES = ("GorillaFileSystem", "MathAPI")
ERROR = "Error during execution: "
SOURCE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code.gorilla_file_system.GorillaFileSystem"


def instances(revision="v4", **options):
    return Instances(revision, load_apis(revision, CLASSES, CONFIG), **options)


CALLS = [
    ("cd(folder='docs')", '{"current_working_directory": "docs"}'),
    ("cd (folder = '..')", "{}"),
    ("cd('docs')", '{"current_working_directory": "docs"}'),
    ("cd(*['..'])", "{}"),
    ("cd(**{'folder': 'docs'})", '{"current_working_directory": "docs"}'),
    ("ls()['current_directory_content']", "[]"),
    ("len(ls()['current_directory_content'])", "0"),
    ("ls(a=None)", '{"current_directory_content": []}'),
    ("ls(a=not 1)", '{"current_directory_content": []}'),
    ("[ls(), 1]", "[{'current_directory_content': []}, 1]"),
    ("(ls())", '{"current_directory_content": []}'),
    ("   ls()", '{"current_directory_content": []}'),
    ("\nls()", '{"current_directory_content": []}'),
    ("ls() # list", '{"current_directory_content": []}'),
    ("mean(numbers=[1, 2*3])", '{"result": 3.5}'),
    ("mean(numbers=[1, mean(numbers=[2, 3])['result']])", '{"result": 1.75}'),
    ("add(a=2**10, b=-5)", '{"result": 1019}'),
    ("add(a=1, b=2.5)", '{"result": 3.5}'),
    ("add(a='1', b=2)", '{"error": "Both inputs must be numbers"}'),
    ("str(add(a=1, b=2))", "{'result': 3}"),
    ("f'{1 + 1} and {add(a=1, b=1)}'", "2 and {'result': 2}"),
    ("{'result': (1, 2)}", '{"result": [1, 2]}'),
    ("{1, 2} - {2}", "{1}"),
    ("'a' * 3", "aaa"),
    ("None", "None"),
    ("...", "Ellipsis"),
    ("1 if 0 else 2", "2"),
    ("1 < 2 < 3 and 'x' in 'xy'", "True"),
    ("print(ls())", "None"),
    ("round(2.567, 1)", "2.6"),
    ("sum([0.1] * 10)", "0.9999999999999999"),
    ("sorted([3, 1])[0]", "1"),
    ("logarithm(value=8, base=2, precision=5)", "{'result': mpf('3.0')}"),
    ("pwd()['current_working_directory'].upper()", "/HOME/DOCS"),
    ("touch(file_name='e')", "None"),
]

ERRORS = [
    ("cd('..', folder='x')", "GorillaFileSystem.cd() got multiple values for argument 'folder'"),
    ("cd()", "GorillaFileSystem.cd() missing 1 required positional argument: 'folder'"),
    ("cd(folder='docs', x=1)", "GorillaFileSystem.cd() got an unexpected keyword argument 'x'"),
    ("cd(folder='docs', foldr=1)", "GorillaFileSystem.cd() got an unexpected keyword argument 'foldr'"),
    ("cd(**{'a': 1}, a=2)", f"{SOURCE}.cd() got multiple values for keyword argument 'a'"),
    ("cd(*1)", f"{SOURCE}.cd() argument after * must be an iterable, not int"),
    ("cd(**1)", f"{SOURCE}.cd() argument after ** must be a mapping, not int"),
    ("cd(**{1: 2})", "keywords must be strings"),
    ("nothing(1)", "name 'nothing' is not defined"),
    ("post_tweet(content='x')", "name 'post_tweet' is not defined"),
    ("tools.cd(folder='docs')", "name 'tools' is not defined"),
    ("GorillaFileSystem.ls()", "name 'GorillaFileSystem' is not defined"),
    ("'a'.ls()", "'str' object has no attribute 'me_GorillaFileSystem_instance'"),
    ("ls", "name 'ls' is not defined"),
    ("ls()()", "'dict' object is not callable"),
    ("ls().x", "'dict' object has no attribute 'x'"),
    ("ls()['x']", "'x'"),
    ("ls(a=true)", "name 'true' is not defined"),
    ("mean(numbers=inf)", "name 'inf' is not defined"),
    ("cd(folder='docs', folder='x')", "keyword argument repeated: folder (<string>, line 1)"),
    ("cd(folder=)", "invalid syntax (<string>, line 1)"),
    ("cd(folder=, x=1)", "invalid syntax (<string>, line 1)"),
    ("cd(f'a)", "unterminated string literal (detected at line 1) (<string>, line 1)"),
    ("cd(fol-der='x')", 'expression cannot contain assignment, perhaps you meant "=="? (<string>, line 1)'),
    ("cd(folder='x'", "'(' was never closed (<string>, line 1)"),
    ("cd(folder='it's')", "unterminated string literal (detected at line 1) (<string>, line 1)"),
    ("cd folder='x'", "invalid syntax (<string>, line 1)"),
    ("cd(folder='x\0')", "source code string cannot contain null bytes"),
    ("", "invalid syntax (<string>, line 0)"),
    ("ls();ls()", "invalid syntax (<string>, line 1)"),
    ("x = 1", "invalid syntax (<string>, line 1)"),
    ("run(x=1)", "Function call run is not allowed."),
    ("os.remove('x')", "Function call remove is not allowed."),
    ("exit ()", "Function call exit is not allowed."),
    ("1/0", "division by zero"),
    ("1 + 'a'", "unsupported operand type(s) for +: 'int' and 'str'"),
    ("{'a': 1}['b']", "'b'"),
    ("[1, 2][5]", "list index out of range"),
    ("print(x=1)", "'x' is an invalid keyword argument for print()"),
    ("int('x')", "invalid literal for int() with base 10: 'x'"),
    ("5()", "'int' object is not callable"),
    ("-'a'", "bad operand type for unary -: 'str'"),
    ("1 < 'a'", "'<' not supported between instances of 'int' and 'str'"),
]


@pytest.mark.parametrize("revision", ["v3", "v4"])
def test_calls_give_what_the_original_gives(revision):
    world = instances(revision)
    assert [(text, world.execute(text).content) for text, _ in CALLS] == CALLS


@pytest.mark.parametrize(("text", "error"), ERRORS)
def test_errors_have_the_originals_texts(text, error):
    outcome = instances(label="me").execute(text)
    assert (outcome.content, outcome.error) == (ERROR + error, True)


def test_names_of_tools_in_strings_get_their_object_and_blanks_go():
    world = instances("v4", label="me_1")
    world.execute("touch(file_name='see ls (x), foo (bar) and mean(1)')")
    named = "see me_1_GorillaFileSystem_instance.ls(x), foo(bar) and me_1_MathAPI_instance.mean(1)"
    assert json.loads(world.execute("ls()").content)["current_directory_content"][-1] == named
    old = instances("v3", label="me_1")
    assert "me_1_gorillafilesystem_instance.ls(x)" in old.execute("cd(folder='ls (x)')").content


def test_a_checked_world_takes_texts_as_they_stand():
    world = instances(checked=True)
    assert world.execute("touch(file_name='ls (x)')").content == "None"
    assert "ls (x)" in world.execute("ls()").content
    assert world.execute("add(a=add(a=1, b=2)['result'], b=1)").content == '{"result": 4}'


HOSTILE = [
    "9**9**9", "power(base=9, exponent=9**9**9)", "power(9, 9**9)", "cd('a' * 10**10)", "[0] * 10**9",
    "[[0] * 1000] * 10**9", "1 << 10**9", "f'{1:999999999}'", "'%999999999d' % 1", "'%*d' % (10**9, 1)",
    "'a'.join(['b' * 1000] * 100000)", "'a'.replace('a', 'b' * 10**7)", "round(5, -10**9)", "int('9' * 100000)",
    "pow(9, 9**9)", "logarithm(value=2, base=2, precision=10**9)", "square_root(number=2, precision=10**8)",
    "(" * 10000, "-" * 100000 + "1", "1+" * 5000 + "1", "a" + ".b" * 50000, "cd(" * 90 + "'x'" + ")" * 90,
    "{**" * 80 + "{}" + "}" * 80, "ls()" + "[0]" * 1000, "print(" * 61 + ")" * 61, "f'" + "{" * 5000, "'" * 10001,
    "a(b" * 50000, "not " * 20000 + "1", "1 if 1 else " * 5000 + "1", "\ud800", "x" * (MAX_LENGTH + 1),
    "__import__('os').system('true')", "().__class__.__bases__", "ls.__globals__", "getattr(1, 'real')", "eval('1')",
    "exec('1')", "open('/etc/passwd')", "inspect.os.getcwd()", "globals()", "(lambda: 1)()", "[x for x in (1,)]",
    "cd(folder=cd)", "str(print)", "(x := 1)", "ls() if ls else 1", "map(str, [1])", "'{0.__class__}'.format(1)",
    "ls().get.__self__", "[].append(1)", "{}.update({1: 2})",
]  # fmt: skip


def test_hostile_texts_are_errors_at_once_and_change_nothing():
    world = instances()
    before = world.digest(private=True)
    for text in HOSTILE:
        outcome = world.execute(text)
        assert outcome.error, text[:60]
        assert len(outcome.content) < 2 * MAX_LENGTH, text[:60]
    assert world.digest(private=True) == before


def test_a_long_literal_is_fine():
    world = instances()
    name = "n" * 200_000
    assert world.execute(f"touch(file_name={name!r})").content == "None"
    assert name in world.execute("ls()").content


def test_results_of_one_expression_are_bounded_together():
    several = ", ".join(["'ab' * 300000"] * 6)
    assert instances().execute(f"[{several}]").content == ERROR + "the expression is too long"
    assert weight([["a" * 1000] * 1000] * 1000) > MAX_WEIGHT


def test_pythons_warnings_about_a_text_stay_away():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world = instances()
        assert world.execute(r"echo(content='a\d')").content == r'{"terminal_output": "a\\d"}'
        assert world.execute("1if 1else 2").content == "1"
        assert world.execute("'a' is 'a'").content == "True"


def test_what_is_parsed_is_not_changed_by_a_call():
    world = instances()
    for _ in range(3):
        assert world.execute("mean(numbers=[1, 2, 3])").content == '{"result": 2.0}'
    names = tool_names("v4", CLASSES)
    assert parse("ls(a=True)", names) is parse("ls(a=True)", names)
    assert parse("ls(a=True)", names) is not parse("ls(a=True)", tool_names("v4", ("GorillaFileSystem",)))


def test_threads_may_parse_at_once():
    found = []

    def work(_):
        world = instances()
        found.append([world.execute(f"echo(content='\\d{n}')").error for n in range(40)])

    in_threads(work)
    assert found == [[False] * 40] * 8


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab '", max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
NAMES = st.from_regex(r"[a-z]{1,6}", fullmatch=True).filter(lambda n: n not in ("if", "in", "is", "or", "and", "not"))


@given(NAMES, st.dictionaries(NAMES.map(lambda n: n + "_"), VALUES, max_size=3))
def test_a_native_calls_text_is_read_back(name, arguments):
    assert literal_call(call_text(f"{name}_", arguments)) == (f"{name}_", arguments)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(["dir_name", "x"]), VALUES, max_size=2))
def test_text_and_direct_call_do_the_same(arguments):
    one, two = instances(), instances()
    text = call_text("mkdir", arguments)
    if "(" not in text.removeprefix("mkdir("):
        assert one.execute(text) == two.run("GorillaFileSystem", "mkdir", arguments)
        assert one.digest(private=True) == two.digest(private=True)


@pytest.mark.parametrize("text", ["f(1)", "f(x=g())", "f(**{})", "f", "f(x)", "1 + 1", "f(x=1)(y=2)", "f(", "", "\0"])
def test_what_is_no_call_with_named_literals(text):
    assert literal_call(text) is None


def test_literal_arguments():
    assert literal_call("a.b(x=-1, y=[1, {'z': (2,)}])") == ("a.b", {"x": -1, "y": [1, {"z": (2,)}]})
    call = ast.parse("f(1, 'a', k=2 * 3)", mode="eval").body
    assert argument_values(call) == ([1, "a"], {"k": 6})
    assert argument_values(ast.parse("f(x)", mode="eval").body) is None
