"""A copy of the working folder, and the guards that keep a script in it."""

import subprocess
import sys
from pathlib import Path

import pytest

from truestep.experiments.running import folder_copy as module
from truestep.experiments.running.folder_copy import scratch


@pytest.mark.program
def test_the_copy_is_written_and_the_original_stays(tmp_path):
    folder = tmp_path / "work"
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / "train.py").write_text("1")
    (folder / "data" / "deep" / "x.txt").write_text("2")
    (folder / ".git").mkdir()
    (folder / "link").symlink_to(folder / "train.py")
    with scratch(folder) as copy:
        assert (copy / "data/deep/x.txt").read_text() == "2"
        (copy / "train.py").write_text("changed")
        (copy / "data" / "new.txt").write_text("new")
        assert (copy / ".git").is_symlink()
        assert (copy / "link").read_text() == "1"
    assert (folder / "train.py").read_text() == "1"
    assert not (folder / "data" / "new.txt").exists()
    assert not copy.exists()


def test_what_is_around_the_folder_is_around_the_copy(tmp_path):
    (tmp_path / "project" / "code").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt").write_text("far")
    (tmp_path / "project" / "near.txt").write_text("near")
    with scratch(tmp_path / "project" / "code") as copy:
        assert (copy / "../near.txt").read_text() == "near"
        assert (copy / "../../data/x.txt").read_text() == "far"


def test_large_files_are_links(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LARGE_BYTES", 10)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "large").write_text("x" * 11)
    (tmp_path / "work" / "small").write_text("x" * 10)
    with scratch(tmp_path / "work") as copy:
        assert (copy / "large").is_symlink()
        assert not (copy / "small").is_symlink()


@pytest.mark.program
def test_not_more_is_copied_than_there_is_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_FILES", 2)
    for number in range(4):
        (tmp_path / "work" / str(number)).mkdir(parents=True)
        (tmp_path / "work" / str(number) / "file").write_text("x")
    with scratch(tmp_path / "work") as copy:
        assert [(copy / str(number)).is_symlink() for number in range(4)] == [False, False, True, True]
        assert (copy / "3" / "file").read_text() == "x"


CONFINED = """
import os, sys
from pathlib import Path
from truestep.experiments.running.inside import write_sandbox
inside, outside, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
if how == "python":
    write_sandbox._landlock = lambda places: False
assert write_sandbox.confine([inside, inside / "missing"]) == how
(inside / "a.txt").write_text("x")
os.rename(inside / "a.txt", inside / "b.txt")
(inside / "sub").mkdir()
os.remove(inside / "b.txt")
assert (outside / "kept.txt").read_text() == "kept"
for write in (
    lambda: (outside / "new.txt").write_text("x"),
    lambda: (outside / "kept.txt").open("a").close(),
    lambda: os.mkdir(outside / "sub"),
    lambda: os.remove(outside / "kept.txt"),
    lambda: os.rename(outside / "kept.txt", inside / "taken.txt"),
    lambda: os.truncate(outside / "kept.txt", 0),
):
    try:
        write()
    except OSError as error:
        continue
    raise SystemExit("written")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's guard is Linux's")
@pytest.mark.parametrize("how", ["kernel", "python"])
def test_a_confined_process_writes_nowhere_else(tmp_path, how):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    done = subprocess.run(
        [sys.executable, "-c", CONFINED, inside, outside, how], capture_output=True, text=True, check=False
    )
    if how == "kernel" and "AssertionError" in done.stderr and "confine" in done.stderr:
        pytest.skip("this kernel has no Landlock")
    assert done.returncode == 0, done.stderr
    assert (outside / "kept.txt").read_text() == "kept"
    assert sorted(path.name for path in Path(outside).iterdir()) == ["kept.txt"]
