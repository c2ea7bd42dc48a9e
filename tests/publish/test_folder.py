"""Published folders appear whole, and take the place of nothing but an unchanged one of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl_tools.publish.folder import RECORD, Content, check_place, write_folder

FILES: dict[str, Content] = {"a.txt": "one", "deep/b.bin": b"\x00"}


def written(out: Path) -> dict[str, bytes]:
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*") if p.is_file()}


def test_a_folder_has_its_files_and_a_record_of_them(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    (tmp_path / "source").write_text("copied")
    write_folder(out, {**FILES, "c": tmp_path / "source"}, {"form": "openenv"})
    found = written(out)
    assert found.keys() == {"a.txt", "deep/b.bin", "c", RECORD}
    assert found["a.txt"] == b"one" and found["deep/b.bin"] == b"\x00" and found["c"] == b"copied"
    assert b'"form": "openenv"' in found[RECORD] and b'"deep/b.bin"' in found[RECORD]
    assert [p.name for p in out.parent.iterdir()] == ["folder"]


def test_an_unchanged_one_is_replaced_with_the_caches_in_it(tmp_path: Path) -> None:
    out = tmp_path / "folder"
    write_folder(out, {**FILES, "wheels/x.whl": "1"}, {})
    (out / "deep" / "__pycache__").mkdir()
    (out / "deep" / "__pycache__" / "b.pyc").write_bytes(b"")
    (out / "wheels" / "x.whl").write_text("the same wheel, built again")
    write_folder(out, {"other.txt": "two"}, {})
    assert written(out).keys() == {"other.txt", RECORD}
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda out: (out / RECORD).unlink(), "was not written by muarl env export"),
        (lambda out: (out / RECORD).write_text("{}"), "was not written by muarl env export"),
        (lambda out: (out / "a.txt").write_text("mine"), "changed or added since it was written .a.txt"),
        (lambda out: (out / "mine.txt").write_text(""), "changed or added since it was written .mine.txt"),
        (lambda out: (out / "a.txt").unlink() or (out / "a.txt").symlink_to("deep/b.bin"), "a.txt"),
    ],
)
def test_what_somebody_else_wrote_is_left_alone(tmp_path: Path, change: object, message: str) -> None:
    out = tmp_path / "folder"
    write_folder(out, FILES, {})
    change(out)  # type: ignore[operator]
    before = written(out)
    with pytest.raises(ConfigError, match=message):
        write_folder(out, FILES, {})
    assert written(out) == before


def test_a_file_is_no_place_and_an_empty_folder_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a file"):
        check_place(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    write_folder(tmp_path / "empty", FILES, {})
    assert (tmp_path / "empty" / "a.txt").read_text() == "one"


def test_the_old_folder_stays_where_the_new_one_cannot_be_filled(tmp_path: Path) -> None:
    out = tmp_path / "folder"
    write_folder(out, FILES, {})
    before = written(out)
    with pytest.raises(FileNotFoundError):
        write_folder(out, {"a.txt": tmp_path / "nothing"}, {})
    assert written(out) == before and [p.name for p in tmp_path.iterdir()] == ["folder"]
