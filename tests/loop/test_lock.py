"""One run at a time writes into a folder; the lock ends with the process that took it."""

import json
import os
import signal
import subprocess
import sys

import pytest

from truestep.errors import FolderInUse, UnwritableFolder
from truestep.loop.checkpoint.disk.lock import FolderLock

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # python 3.12 names all threads
HOLDER = """
import os, sys, time
from pathlib import Path
from truestep.loop.checkpoint.disk.lock import FolderLock

lock = FolderLock(Path(sys.argv[1]))
worker = os.fork()
if worker == 0:
    os.close(1)
    time.sleep(60)
    os._exit(0)
print(os.getpid(), worker, flush=True)
time.sleep(60)
"""


def test_a_second_holder_gets_the_name_of_the_first(tmp_path):
    with FolderLock(tmp_path):
        with pytest.raises(FolderInUse, match=f"process {os.getpid()} on {os.uname().nodename}"):
            FolderLock(tmp_path)


@pytest.mark.program
def test_a_refused_holder_leaves_the_lock_and_its_text_alone(tmp_path):
    with FolderLock(tmp_path):
        for _ in range(2):
            with pytest.raises(FolderInUse):
                FolderLock(tmp_path)
        assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()


def test_a_released_folder_can_be_held_again(tmp_path):
    first = FolderLock(tmp_path)
    first.release()
    first.release()
    with FolderLock(tmp_path) as second:
        first.release()
        with pytest.raises(FolderInUse):
            FolderLock(tmp_path)
        assert second.folder == tmp_path


def test_a_missing_folder_is_made(tmp_path):
    with FolderLock(tmp_path / "runs" / "lab"):
        assert (tmp_path / "runs" / "lab" / ".lock").exists()


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "lab").write_text("", encoding="utf-8")
    with pytest.raises(UnwritableFolder, match="cannot write into"):
        FolderLock(tmp_path / "lab")


def test_an_empty_lock_that_is_held_is_a_process_just_starting(tmp_path):
    with FolderLock(tmp_path):
        os.truncate(tmp_path / ".lock", 0)
        with pytest.raises(FolderInUse, match="a process that is starting"):
            FolderLock(tmp_path)


def test_a_forked_child_holds_nothing_and_takes_nothing_away(tmp_path):
    with FolderLock(tmp_path) as lock:
        child = os.fork()
        if child == 0:
            lock.release()
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(FolderInUse):
            FolderLock(tmp_path)


def test_a_killed_holder_frees_the_folder_though_its_worker_lives(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        pid, worker = map(int, holder.stdout.readline().split())
        with pytest.raises(FolderInUse, match=f"process {pid} "):
            FolderLock(tmp_path)
        holder.kill()
        holder.wait()
        os.kill(worker, 0)
        try:
            FolderLock(tmp_path).release()
        finally:
            os.kill(worker, signal.SIGKILL)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
