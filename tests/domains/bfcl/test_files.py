"""GorillaFileSystem in both revisions: answers, state, and what it does with trees that are none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.domains.tooling import tools_of
from muarl_worlds.bfcl.files import REVISIONS
from muarl_worlds.bfcl.tree import MOST_ENTRIES, Directory, File
from support.bfcl import answer

TOOLS = {
    "pwd", "ls", "cd", "mkdir", "touch", "echo", "cat", "find", "wc", "sort", "grep", "du", "tail", "diff", "mv", "rm",
    "rmdir", "cp",
}  # fmt: skip
CONFIG = {
    "root": {
        "home": {
            "type": "directory",
            "contents": {
                "docs": {
                    "type": "directory",
                    "contents": {
                        "a.txt": {"type": "file", "content": "pear\napple\nfig"},
                        "b.txt": {"type": "file", "content": "pear\nplum"},
                        ".secret": {"type": "file", "content": "ä"},
                        "old": {"type": "directory", "contents": {}},
                    },
                },
                "log": {"type": "file", "content": "one two"},
            },
        }
    }
}


@pytest.fixture(params=["v3", "v4"])
def revision(request):
    return request.param


def system(revision, config=CONFIG, long_context=None):
    made = REVISIONS[revision]()
    made.load(config, long_context)
    return made


@pytest.fixture
def files(revision):
    made = system(revision)
    made.cd("docs")
    return made


def error(text):
    return json.dumps({"error": text})


def test_both_revisions_have_the_official_tools(revision):
    assert set(tools_of(REVISIONS[revision])) == TOOLS
    assert REVISIONS[revision].name == "GorillaFileSystem"


def test_the_state_is_the_tree_and_the_flag_of_long_context(revision):
    made = system(revision)
    assert list(made.state()) == ["long_context", "root"]
    assert made.state()["long_context"] is False
    assert system(revision, {}).root.to_json() == {"contents": {}, "name": "/"}
    assert made.root.to_json()["contents"]["log"] == {"content": "one two", "name": "log"}


def test_looking_at_files(files):
    assert files.ls() == {"current_directory_content": ["a.txt", "b.txt", "old"]}
    assert files.ls(True) == {"current_directory_content": ["a.txt", "b.txt", ".secret", "old"]}
    assert files.cat("a.txt") == {"file_content": "pear\napple\nfig"}
    assert files.sort("a.txt") == {"sorted_content": "apple\nfig\npear"}
    assert files.grep("a.txt", "p") == {"matching_lines": ["pear", "apple"]}
    assert files.diff("a.txt", "b.txt") == {"diff_lines": "- apple\n+ plum"}
    assert files.tail("a.txt", 2) == {"last_lines": "apple\nfig"}
    assert files.wc("a.txt") == {"count": 3, "type": "lines"}
    assert files.wc("a.txt", "w") == {"count": 3, "type": "words"}
    assert files.wc("a.txt", "c") == {"count": 14, "type": "characters"}
    assert files.wc("a.txt", "x") == {"error": "wc: invalid mode 'x'"}


def test_sizes_are_bytes_and_human_readable_ones_have_two_decimals(files):
    assert files.du() == {"disk_usage": "25 bytes"}
    assert files.du(True) == {"disk_usage": "25.00 B"}
    files.echo("x" * 5000, "a.txt")
    assert files.du(human_readable=True) == {"disk_usage": "4.89 KB"}


@pytest.mark.parametrize(
    ("lines", "shown"),
    [(0, "pear\napple\nfig"), (-1, "apple\nfig"), (True, "fig"), (99, "pear\napple\nfig")],
)
def test_tail_slices_as_python_does(files, lines, shown):
    assert files.tail("a.txt", lines) == {"last_lines": shown}


def test_going_about(files):
    assert files.pwd() == {"current_working_directory": "/home/docs"}
    assert files.cd("old") == {"current_working_directory": "old"}
    assert files.cd("..") == {}
    assert files.cd("..") == {}
    assert files.cd(".") == {"current_working_directory": "home"}
    assert files.cd("/") == {"current_working_directory": "home"}
    assert files.pwd() == {"current_working_directory": "/home"}


def test_what_cd_says_differs_between_revisions():
    old, new = system("v3"), system("v4")
    assert old.cd("..") == {"error": "Cuurent directory is already the root. Cannot go back."}
    assert new.cd("..") == {"error": "Current directory is already the root. Cannot go back."}
    assert old.cd("docs/old") == {"current_working_directory": "old"}
    assert new.cd("docs/old") == {
        "error": "cd: docs/old: Unsupported path. Only one folder level at a time is supported."
    }
    assert new.cd("docs/") == {"current_working_directory": "docs"}
    assert new.cd("/docs")["error"].startswith("cd: /docs: Unsupported path.")
    assert new.cd("nowhere") == {"error": "cd: 'nowhere': No such file or directory"}
    assert old.cd("nowhere") == {"error": "cd: nowhere: No such directory. You cannot use path to change directory."}
    assert old.cd(None) == {"current_working_directory": "old"}
    assert answer(new, "cd", None) == "Error during execution: 'NoneType' object has no attribute 'rstrip'"


def test_echo_makes_files_in_v3_alone():
    old, new = system("v3"), system("v4")
    assert old.echo("hi", "new") is None and old.cat("new") == {"file_content": "hi"}
    assert new.echo("hi", "new") == {"error": "echo: cannot write to 'new': No such file"}
    assert old.echo("hi", "a/b") == {"error": "echo: cannot touch 'a/b': Invalid character"}
    assert new.echo("hi", "a/b") == {"error": "echo: cannot write to 'a/b': Invalid character"}
    for one in (old, new):
        assert one.echo("hi") == one.echo("hi", "") == {"terminal_output": "hi"}
        assert one.echo("hi", "log") is None and one.cat("log") == {"file_content": "hi"}
        assert answer(one, "echo", "hi", "docs").endswith("'Directory' object has no attribute '_write'")


def test_find_looks_at_its_path_in_v4_alone():
    old, new = system("v3"), system("v4")
    everything = ["docs", "docs/a.txt", "docs/b.txt", "docs/.secret", "docs/old", "log"]
    for one in (old, new):
        assert one.find() == {"matches": [f"./{path}" for path in everything]}
        assert one.find(name="txt") == {"matches": ["./docs/a.txt", "./docs/b.txt"]}
    assert old.find("docs", "o") == {"matches": ["docs/docs", "docs/docs/old", "docs/log"]}
    assert new.find("docs/", "o") == {"matches": ["docs/old"]}
    assert new.find("/docs", "o") == {"matches": ["/docs/old"]}
    assert new.find("nowhere") == {"error": "find: 'nowhere': No such file or directory"}


def test_other_errors_of_each_revision():
    old, new = system("v3"), system("v4")
    assert old.cat("x") == {"error": "cat: x: No such file or directory"}
    assert new.cat("x") == {"error": "cat: 'x': No such file or directory"}
    assert old.cat("docs") == {"error": "cat: docs: Is a directory"}
    assert new.cat("docs") == {"error": "cat: 'docs': Is a directory"}
    assert old.rmdir("docs") == {"error": "rmdir: failed to remove 'docs': Directory not empty"}
    assert new.rmdir("docs") == {"error": "rmdir: cannot remove 'docs': Directory not empty"}
    only = "Only file name and folder name is supported for this operation."
    assert old.mv("log", "a/b") == {"error": f"mv: no path allowed in destination. {only}"}
    assert old.cp("log", "a/b") == {"error": f"cp: don't allow path in destination. {only}"}
    for name in ("mv", "cp"):
        text = f"{name}: path not allowed in destination. Provide only a file or directory name."
        assert getattr(new, name)("log", "a/b") == {"error": text}


def test_making_and_removing(files):
    assert files.mkdir("x") is None and files.touch("y") is None
    assert files.mkdir("x") == {"error": "mkdir: cannot create directory 'x': File exists"}
    assert files.touch("y") == {"error": "touch: cannot touch 'y': File exists"}
    assert files.mkdir("a|b") == {"error": "mkdir: cannot create directory 'a|b': Invalid character"}
    assert files.rmdir("y") == {"error": "rmdir: cannot remove 'y': Not a directory"}
    assert files.rmdir("x") == {"result": "'x' removed"}
    assert files.rm("y") == {"result": "'y' removed"}
    assert files.rm("y") == {"error": "rm: cannot remove 'y': No such file or directory"}


def test_moving_and_copying(files):
    assert files.mv("a.txt", "c.txt") == {"result": "'a.txt' moved to 'c.txt'"}
    assert files.mv("c.txt", "old") == {"result": "'c.txt' moved to 'old/c.txt'"}
    assert files.cp("b.txt", "old") == {"result": "'b.txt' copied to 'old/b.txt'"}
    assert files.mv("b.txt", "old") == {"error": "mv: cannot move 'b.txt' to 'old/b.txt': File exists"}
    assert answer(files, "cp", "b.txt", "old") == (
        "Error during execution: File 'b.txt' already exists in directory 'old'."
    )
    assert files.cp("old", "b.txt") == {"error": "cp: cannot copy 'old' to 'b.txt': Not a directory"}
    assert files.cp("old", "new") == {"result": "'old' copied to 'new'"}
    assert files.find(name="c.txt") == {"matches": ["./old/c.txt", "./new/c.txt"]}


def test_the_way_up_from_a_moved_directorys_child_leads_to_the_old_one(files):
    files.cd("old")
    files.mkdir("deep")
    files.cd("..")
    files.mv("old", "new")
    files.cd("new")
    files.cd("deep")
    assert files.pwd() == {"current_working_directory": "/home/docs/old/deep"}
    files.cd("..")
    files.touch("seen from both")
    files.cd("/")
    assert files.find(name="seen")["matches"] == ["./docs/new/seen from both"]


def test_a_copied_directory_shares_what_it_holds(files):
    files.cp("old", "first")
    files.mkdir("box")
    files.mv("a.txt", "box")
    files.cp("box", "twin")
    files.cd("twin")
    files.echo("changed", "a.txt")
    files.cd("..")
    files.cd("box")
    assert files.cat("a.txt") == {"file_content": "changed"}


def test_a_dot_can_be_made_and_is_always_the_directory_itself(files):
    assert files.mkdir(".") is None
    assert files.cat(".")["error"].endswith("Is a directory")
    assert files.rmdir(".")["error"].endswith("Directory not empty")
    assert files.rm(".") == {"result": "'.' removed"}
    assert files.rm(".")["error"] == "rm: cannot remove '.': No such file or directory"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (("ls", {"x": 1}), "GorillaFileSystem.ls() got an unexpected keyword argument 'x'"),
        (("cd", {}), "GorillaFileSystem.cd() missing 1 required positional argument: 'folder'"),
        (("find", {"q": 1}), "GorillaFileSystem.find() got an unexpected keyword argument 'q'"),
        (("echo", {}), "GorillaFileSystem.echo() missing 1 required positional argument: 'content'"),
        (("mkdir", {"dir_name": 5}), "argument of type 'int' is not iterable"),
        (("mkdir", {"dir_name": ["a"]}), "unhashable type: 'list'"),
        (("cat", {"file_name": None}), "argument of type 'NoneType' is not iterable"),
        (("tail", {"file_name": "a.txt", "lines": "1"}), "'>' not supported between instances of 'str' and 'int'"),
        (("grep", {"file_name": "a.txt", "pattern": 1}), "'in <string>' requires string as left operand, not int"),
        (("mv", {"source": "a.txt", "destination": 1}), "argument of type 'int' is not iterable"),
    ],
)
def test_python_speaks_of_upstreams_class_in_both_revisions(files, call, text):
    name, arguments = call
    assert answer(files, name, **arguments) == f"Error during execution: {text}"


def test_what_was_written_may_be_no_text(files):
    files.echo(5, "a.txt")
    assert files.cat("a.txt") == {"file_content": 5}
    assert answer(files, "wc", "a.txt") == "Error during execution: 'int' object has no attribute 'splitlines'"
    assert files.mkdir(("p", "q")) is None
    assert answer(files, "ls") == "Error during execution: 'tuple' object has no attribute 'startswith'"
    assert answer(files, "pwd") == '{"current_working_directory": "/home/docs"}'


def test_equal_are_trees_of_the_same_names_and_contents(revision):
    one, other = system(revision), system(revision)
    one.cd("docs")
    assert one.root == other.root  # wherever one is
    one.mv("a.txt", "x")
    one.mv("x", "a.txt")
    assert one.root == other.root  # in whatever order
    one.echo("", "a.txt")
    assert one.root != other.root
    assert one.root != 5 and File("a") != Directory("a")
    assert repr(other.root).startswith("<Directory: home, Parent: None, Contents: {'docs': <Directory: docs, Parent: ")
    assert repr(File("a", "b")) == "<<File: a, Content: b>>"


def test_long_context_adds_text_to_files_and_files_to_innermost_directories(revision):
    literals = {"FILE_CONTENT_EXTENSION": "+", "FILES_TAIL_USED": ["b.txt"], "POPULATE_FILE_EXTENSION": ["p1", "p2"]}
    made = system(revision, CONFIG, literals)
    assert made.long_context is True
    assert made.cat("log") == {"file_content": "one two+"}
    assert made.ls() == {"current_directory_content": ["docs", "log"]}
    made.cd("docs")
    assert made.cat("b.txt") == {"file_content": "pear\nplum"}
    made.cd("old")
    assert made.ls() == {"current_directory_content": ["p1", "p2"]}
    assert system(revision, {}, literals).ls() == {"current_directory_content": []}


def test_a_copy_is_in_the_same_place_and_shares_nothing_that_changes(files):
    files.cp("a.txt", "same")
    files.mkdir("in")
    files.cd("in")
    twin = files.copy()
    assert twin.root == files.root and twin.pwd() == files.pwd()
    files.touch("only here")
    files.cd("..")
    files.echo("changed", "a.txt")
    assert twin.ls() == {"current_directory_content": []}
    twin.cd("..")
    assert twin.cat("a.txt") == {"file_content": "pear\napple\nfig"}


NAMES = st.sampled_from(["a", "b", "c", ".", "docs", "old", "a.txt", "log"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["mkdir", "touch", "rm", "rmdir", "cd", "cat"]), NAMES),
    st.tuples(st.sampled_from(["mv", "cp", "echo"]), NAMES, NAMES),
    st.just(("cd", "..")),
    st.just(("find",)),
    st.just(("du",)),
)


@given(st.sampled_from(["v3", "v4"]), st.lists(STEPS, max_size=25), st.lists(STEPS, max_size=10))
def test_a_copy_answers_as_the_original_would_and_leaves_it_alone(revision, before, after):
    original, same = system(revision), system(revision)
    for step in before:
        assert answer(original, *step) == answer(same, *step)
    twin = original.copy()
    answers = [answer(twin, *step) for step in after]
    assert original.root == same.root
    assert original.root.to_json() == same.root.to_json() and original.pwd() == same.pwd()
    assert answers == [answer(original, *step) for step in after]
    assert twin.root == original.root


def test_a_directory_that_holds_itself_ends_every_search(revision):
    one, other = system(revision), system(revision)
    for files in (one, other):
        assert files.cp("docs", "docs") == {"result": "'docs' copied to 'docs/docs'"}
    called = "Error during execution: maximum recursion depth exceeded"
    assert answer(one, "find") == f"{called} while calling a Python object"
    assert answer(one, "du") == called
    assert one.root == other.root
    inner = one.root.to_json()["contents"]["docs"]["contents"]["docs"]
    assert inner["contents"]["docs"] == {"contents": "...", "name": "docs"}
    twin = one.copy()
    twin.cd("docs")
    twin.touch("x")
    assert one.root != twin.root


def test_a_directory_that_holds_itself_is_written_as_upstream_writes_it(revision):
    files = system(revision, {})
    files.mkdir("a")
    files.cp("a", "a")
    inner = "<Directory: a, Parent: a, Contents: {'a': <Directory: a, Parent: a, Contents: {...}>}>"
    outer = f"<Directory: a, Parent: /, Contents: {{'a': {inner}}}>"
    assert repr(files.root) == f"<Directory: /, Parent: None, Contents: {{'a': {outer}}}>"


def test_a_tree_of_any_size_made_by_few_calls_ends_every_search(revision):
    files = system(revision, {})
    files.touch("f")
    files.mkdir("d0")
    for level in range(40):
        files.mkdir(f"d{level + 1}")
        files.cp(f"d{level}", f"d{level + 1}")
        files.mv(f"d{level}", "again")
        files.cp("again", f"d{level + 1}")
        files.rm("again")
    assert files.find() == {"error": "find: too many files and directories"}
    assert files.du() == {"error": "du: too many files and directories"}
    twin = files.copy()
    assert files.root == twin.root
    assert len(json.dumps(files.root.to_json())) < 10_000_000
    assert len(repr(files.root)) < 10_000_000


def test_thousands_of_levels_end_every_search(revision):
    files = system(revision, {})
    for _ in range(5000):
        files.mkdir("d")
        files.cd("d")
    assert len(files.pwd()["current_working_directory"]) == 10_002
    files.cd("/")
    assert answer(files, "find").startswith("Error during execution: maximum recursion depth exceeded")
    assert answer(files, "du") == "Error during execution: maximum recursion depth exceeded"
    assert files.copy().root == files.root
    assert len(json.dumps(files.root.to_json())) < 10_000


def test_long_names_are_not_multiplied(revision):
    files = system(revision, {})
    for _ in range(20):
        files.mkdir("x" * 1_000_000)
        files.cd("x" * 1_000_000)
    files.cd("/")
    assert files.find(name="none") == {"error": "find: too many files and directories"}
    assert MOST_ENTRIES >= 10_000
