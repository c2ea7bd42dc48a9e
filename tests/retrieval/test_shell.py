"""The shell over documents, against the real one where there is a GNU one, and what it refuses."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.retrieval.documents import Document, Knowledge
from muarl_worlds.tau.banking.shell.files import files_of
from muarl_worlds.tau.banking.shell.run import Shell, names

FILES = {
    "INDEX.md": "# Index\n\n- **a.md** - Fees\n- **b_c.md** - Cards\n",
    "a.md": "# Fees\n\nThe ATM fee is $3 (three).\nA fee may be refunded.\nfees: 10%, 20%, 3\nlast line",
    "b_c.md": "# Cards\n\nCredit card\tand debit card rules.\nCREDIT limits: 5000\n\n\nend card card\n",
    "empty.md": "",
    "loans/home.md": "# Home loans\nrate: 3.5\nrate: 12\nrate: 3.5\nrate: 3.5\n",
}
COMMANDS = [
    line.replace("⏎", "\n")
    for line in r"""
ls
ls -1
ls loans
ls *.md
ls -r
ls nothing
cat a.md
cat a.md b_c.md
cat -n a.md
cat nothing.md
cat a.md nothing.md INDEX.md
head -n 2 a.md
head -2 a.md b_c.md
head -c 5 a.md
tail -n 2 a.md
tail -n +3 b_c.md
tail -1 b_c.md
cat b_c.md | head -1
wc -l a.md
wc a.md b_c.md
cat a.md | wc -l
wc -w < a.md
grep fee a.md
grep -i FEE a.md b_c.md
grep -rn fee .
grep -ri card .
grep -rl card
grep -rl card .
grep -c card a.md b_c.md
grep -L card a.md b_c.md
grep -o 'c[a-z]*d' b_c.md
grep -v e a.md
grep -w fee a.md
grep -x 'last line' a.md
grep -E 'fee|card' a.md b_c.md
grep 'fee\|card' a.md b_c.md
grep -F '$3 (three)' a.md
grep '$3' a.md
grep 'a*(' a.md
grep -E '[0-9]{2,}' a.md
grep '[0-9]\{2,\}' a.md
grep -A 1 ATM a.md
grep -B1 -n refunded a.md
grep -C 1 'debit' b_c.md
grep -n -C1 card b_c.md
grep -m 1 -n rate loans/home.md
grep -h fee a.md INDEX.md
grep -e fee -e ATM a.md
grep -rin --include='b*' card .
grep '\bfee\b' a.md
grep '\<car' b_c.md
grep '^$' b_c.md
grep -c '' a.md
grep '[[:digit:]]%' a.md
grep -E '^(The|A) ' a.md
grep '\(card\) \1' b_c.md
grep zzz a.md
grep -q fee a.md && echo yes
grep -q zzz a.md || echo no
grep fee
grep fee loans
find . -name '*.md' | sort
find . -type f | sort
find . -iname '*HOME*'
find . -maxdepth 1 -type f | sort
find . -type d | sort
find loans -name 'h*'
find . -not -name '*.md' -type f
sort loans/home.md
sort -u loans/home.md
sort -r a.md
sort loans/home.md | uniq -c
cut -d: -f2 loans/home.md
cut -c1-4 a.md
cut -d' ' -f2- a.md
cat a.md | tr a-z A-Z
tr -d aeiou < a.md
tr -s ' e' < b_c.md
tr '[:upper:]' '[:lower:]' < b_c.md
sed -n '2,3p' a.md
sed -n '/fee/p' a.md
sed 's/fee/FEE/g' a.md
sed 's/fee/[&]/' a.md
sed -E 's/([a-z]+) card/card \1/' b_c.md
sed '/^$/d' b_c.md
sed -n '$p' a.md
sed 2q a.md
sed -n '/Credit/,/limits/p' b_c.md
sed '1d;3d' b_c.md
sed -n '3,$p' b_c.md
sed 's/card/X/2' b_c.md
echo hello  world
echo 'a  b' "c $"
echo -n x
echo a; echo b
echo a && false || echo c
true && echo t
ls *.md | xargs wc -l
grep -rl card . | sort | xargs grep -c card
find . -name '*.md' | sort | xargs head -n 1
ls *.md | xargs -n 1 echo
ls *.md | xargs -I{} echo '<{}>'
cat nothing 2>/dev/null
cat nothing 2>&1 | head -1
tac INDEX.md | head -2
cat a.md | grep fee | wc -l
cat *.md | grep -c .
head -1 *.md
nosuchcommand
printf 'a\nb\n'
sort -t: -k2 -n loans/home.md
uniq -d loans/home.md
cat <<'EOF' | tr a-z A-Z⏎hello⏎world⏎EOF
echo 'it'"'"'s'
echo a#b # comment
ls a.md b_c.md
egrep 'fee|ATM' a.md
fgrep '$3' a.md
wc -c empty.md
grep -n . empty.md
""".strip().splitlines()
]
"""A line each; ⏎ ends a line within one."""


def gnu():
    grep = shutil.which("grep")
    told = subprocess.run([grep, "--version"], capture_output=True, text=True).stdout if grep else ""
    return "GNU grep" in told and shutil.which("sh") is not None


@pytest.mark.skipif(not gnu(), reason="no GNU grep here")
def test_commands_answer_as_the_real_ones(tmp_path):
    folder = tmp_path / "kb"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    differing = []
    for command in COMMANDS:
        real = subprocess.run(
            ["sh", "-c", command], cwd=folder, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL
        )
        ours = Shell(FILES).run(command)
        out = "\n".join(sorted(real.stdout.split("\n"))), "\n".join(sorted(ours.out.split("\n")))
        ordered = "-r" not in command.split() and "." not in command.split()  # folders have no order
        if (out[0] != out[1] if not ordered else real.stdout != ours.out) or real.returncode != ours.code:
            differing.append((command, real.stdout, ours.out, real.returncode, ours.code, ours.err))
        assert bool(real.stderr) == bool(ours.err), (command, real.stderr, ours.err)
    assert not differing


def test_documents_become_files_as_tau2_lays_them_out():
    known = Knowledge([Document("doc b/1", "Fees", "Three."), Document("doc_a", "Cards", "None.")])
    assert files_of(known) == {
        "INDEX.md": "# Knowledge Base Index\n\n**Total documents:** 2\n\n## Documents\n\n"
        "- **doc_b_1.md** - Fees\n- **doc_a.md** - Cards\n",
        "doc_a.md": "# Cards\n\nNone.",
        "doc_b_1.md": "# Fees\n\nThree.",
    }


def test_a_long_listing_has_nothing_of_this_machine():
    assert Shell({"a.md": "12345"}).run("ls -la").out == (
        "total 4\n"
        "dr-xr--r-- 1 kb_user  kb_group  4096 Jan  1 00:00 .\n"
        "dr-xr--r-- 1 kb_user  kb_group  4096 Jan  1 00:00 ..\n"
        "-r--r--r-- 1 kb_user  kb_group  5 Jan  1 00:00 a.md\n"
    )


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("cat /etc/passwd", "contains 'absolute path: /etc/passwd'"),
        ("cat ../x", "contains '..'"),
        ("ls ~", "contains '~'"),
        ("echo $HOME", "contains '$HOME'"),
        ("echo $PATH", "variables and substitutions"),
        ("echo `ls`", "variables and subst"),
        ("echo $(ls)", "variables and substitutions"),
        ("for f in *; do cat a.md; done", "only plain commands"),
        ("cat a.md &", "only plain commands"),
        ("(ls)", "only plain commands"),
        ("awk '{print}' a.md", "awk: not found"),
        ("python3 -c 1", "python3: not found"),
        ("cat 'a", "Unterminated"),
        ("| cat", "Syntax error"),
        ("echo a |", "Syntax error"),
        ("echo x > y", "cannot create y: Read-only file system"),
        ("touch y", "Read-only"),
        ("rm a.md", "Read-only"),
        ("sed -i s/a/b/ a.md", "Read-only"),
        ('cat "/etc/passwd"', "Permission denied"),
        ("grep -E '(((a{99}){99}){99}){99}' a.md", "too big"),
        ("grep '[' a.md", "Unmatched ["),
        ("find . -exec rm {} +", "not offered here"),
        ("sed y/a/b/ a.md", "not offered here"),
        ("x" * 30_000, "too long"),
        ("cat <", "redirection without a file"),
        ("cat < nothing", "No such file"),
    ],
)
def test_what_is_not_offered_is_said(command, told):
    result = Shell(FILES).run(command)
    assert result.code and told in result.err and not result.out


def test_a_pattern_without_end_and_an_output_without_end_are_stopped():
    assert Shell({"a": "a" * 60 + "\n"}, seconds=0.02).run("grep -E '(a|a|aa)*(b|c)*$x' a").code in (1, 124)
    hostile = Shell({"a": "x" * 5000}, seconds=0.02).run(r"grep -P '(x?){40}.*y.*(x|x)*z' a")
    assert hostile.code in (1, 124)
    big = Shell({"a": "x" * 1_000_000})
    assert "too much output" in big.run("cat a a a a a a a a a a a a").err


def test_writing_stays_in_one_conversation():
    given = dict(FILES)
    shell = Shell(given, writes=True)
    assert shell.run("echo one > notes.md; echo two >> notes.md; cat notes.md").out == "one\ntwo\n"
    assert shell.run("cat > n.md << 'EOF'\nfee $3\nEOF\ngrep fee n.md").out == "fee $3\n"
    assert shell.run("sed -i 's/fee/charge/' a.md && grep -c charge a.md").out == "3\n"
    assert shell.run("mkdir -p x && cp a.md x && mv notes.md x/n2.md && ls x").out == "a.md\nn2.md\n"
    assert shell.run("ls | tee list.txt | wc -l").out == shell.run("wc -l < list.txt").out
    assert shell.run("rm -r x && ls x").code == 2 and shell.run("rm a.md; ls a.md").code == 2
    assert given == FILES and Shell(given).run("cat a.md").out == FILES["a.md"]


def test_files_cannot_grow_without_end():
    shell = Shell({"a": "x" * 1_000_000}, writes=True)
    for n in range(40):
        shell.run(f"cp a b{n}")
    assert "No space left" in shell.run("cp a last").err and sum(map(len, shell.files.texts.values())) <= 1 << 25


@given(
    st.lists(
        st.sampled_from(
            [*names(), "a.md", "-r", "-n", "|", ";", "&&", ">", "'x'", "*", '"', "'", "\\", "1", "s/a/b/", "-e"]
        )
    )
)
def test_no_command_line_breaks_it(pieces):
    result = Shell(FILES, writes=True, seconds=1.0).run(" ".join(pieces))
    assert isinstance(result.out, str) and isinstance(result.code, int)


@given(st.text(max_size=60))
def test_no_text_breaks_it(line):
    Shell(FILES).run(line)
