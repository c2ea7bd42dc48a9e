"""Old dotted names of modules and classes, as other people's files have them."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from muarl.moved import MOVED, RENAMED, name_of_today


def test_an_old_name_gives_the_module_of_today_and_says_where_it_is() -> None:
    from muarl_integrations import blocking

    with pytest.warns(DeprecationWarning, match="muarl.integrations.blocking has moved: import muarl_integrations.b"):
        old = importlib.import_module("muarl.integrations.blocking")
    assert old is blocking and blocking.__spec__ is not None
    assert (blocking.__name__, blocking.__spec__.name) == ("muarl_integrations.blocking", "muarl_integrations.blocking")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_module_below_a_moved_package_is_no_second_copy() -> None:
    from muarl.records import atif

    assert importlib.import_module("muarl.formats.atif") is atif


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_module_that_moved_twice_is_found_by_either_name() -> None:
    from muarl_worlds.tau import tau2_results

    for name in ("muarl.benchmarks.tau2.results", "muarl.formats.tau2", "muarl.records.formats.tau2"):
        assert importlib.import_module(name) is tau2_results


def test_every_new_name_is_a_module() -> None:
    for name in sorted(set(MOVED.values())):
        assert importlib.util.find_spec(name) is not None, name


def test_what_has_not_moved_keeps_its_name() -> None:
    import muarl

    assert [m.name for m in pkgutil.iter_modules(muarl.__path__, "muarl.") if name_of_today(m.name)] == []


def test_what_never_was_there_is_not_found() -> None:
    script = "import muarl.integrations.nothing"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False)
    assert "No module named 'muarl_integrations.nothing'" in done.stderr


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_of_a_class_gives_the_class_of_today_and_says_its_name(old: str, new: str) -> None:
    place, _, name = old.rpartition(".")
    module = importlib.import_module(place)
    with pytest.warns(DeprecationWarning, match=f"^{old} has a new name: import {new}$") as warned:
        value = getattr(module, name)
    assert [Path(one.filename) for one in warned] == [Path(__file__)], "said of the line that has the old name"
    assert isinstance(value, type) and value is vars(module)[new] and value.__name__ == new


def test_an_old_name_of_a_class_is_no_name_of_another_thing_and_not_listed() -> None:
    for old in RENAMED:
        place, _, name = old.rpartition(".")
        module = importlib.import_module(place)
        assert name not in vars(module) and name not in getattr(module, "__all__", ())


def test_a_declaration_with_old_names_is_imported_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match=r"muarl\.kit\.Described has a new name: import RecordDescription"):
        from muarl.kit import Described  # type: ignore[attr-defined]
    from muarl.kit import RecordDescription

    assert Described is RecordDescription


def test_a_module_with_old_names_has_no_others() -> None:
    from muarl import kit

    with pytest.raises(AttributeError, match=r"module 'muarl\.kit' has no attribute 'Describe'"):
        kit.Describe  # type: ignore[attr-defined]  # noqa: B018
