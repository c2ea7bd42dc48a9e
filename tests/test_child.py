"""Child processes end when they are asked, when they must and when their parent does, and say what became of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from muarl.basics.child import Child, end_all
from support.waiting import alive, until

SLEEPS = "import time; print('asleep', flush=True); time.sleep(600)"
HEARS = "import sys; print('hears', flush=True); sys.stdin.read()"


def child(program: str, log: Path | None = None) -> Child:
    started = Child("the child", [sys.executable, "-c", program], log=log)
    until(lambda: started.words() or started.ended is not None)
    return started


def test_its_fate_is_told_with_its_last_words(tmp_path: Path) -> None:
    failed = child("import sys; print('x' * 5000); sys.exit('the table is empty')", tmp_path / "log")
    assert failed.fate().startswith("ended with exit code 1; its last words: xxx")
    assert failed.fate().endswith("the table is empty")
    assert len(failed.words()) <= 2000 < len((tmp_path / "log").read_text())
    failed.end()
    killed = child(SLEEPS)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.fate() == "was killed by SIGKILL; its last words: asleep"
    killed.end()


def test_reading_its_words_leaves_what_it_writes_in_place() -> None:
    program = "import sys\nprint('one', flush=True)\nsys.stdin.read()\nprint('two', flush=True)"
    started = child(program)
    assert started.words(1) == ""  # the end of the line
    started.cut_lifeline()
    assert started.fate() == "ended with exit code 0; its last words: one\ntwo"
    started.end()


def test_all_are_asked_first_and_only_who_does_not_end_is_killed() -> None:
    both = [child(HEARS), child(SLEEPS)]
    end_all(both, 0.5)
    assert [c.ended for c in both] == [0, -signal.SIGKILL]
    end_all(both)


def test_what_it_started_ends_with_it() -> None:
    program = (
        "import subprocess, sys\n"
        f"print(subprocess.Popen([sys.executable, '-c', {SLEEPS!r}], stdout=subprocess.DEVNULL).pid, flush=True)\n"
    )
    started = child(program + "sys.stdin.read()")
    grandchild = int(started.words())
    assert alive(grandchild)
    started.end()
    until(lambda: not alive(grandchild))


PARENT = """
import sys, time
from muarl.basics.child import Child
program = "from muarl.basics.child import Lifeline; import time; Lifeline(); print('up', flush=True); time.sleep(600)"
started = Child("the child", [sys.executable, "-c", program])
while not started.words():
    time.sleep(0.01)
print(started.pid, flush=True)
time.sleep(600)
"""


def test_it_does_not_outlive_a_killed_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
    until(lambda: not alive(pid))


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(OSError, match="none"):
        Child("the child", ["/none"])
