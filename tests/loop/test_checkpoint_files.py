"""The order in which a checkpoint reaches the disk, which no kill can test; and the files after a crash."""

import errno
import os
from pathlib import Path

import pytest
import torch

from truestep.errors import DiskFull, UnwritableFolder
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.disk import files
from truestep.loop.checkpoint.disk.files import (
    DurableFile,
    crc32_of,
    failures_of,
    make_folder,
    publish,
    relink,
    remove,
    sweep,
)


@pytest.fixture
def calls(monkeypatch):
    """Every fsync and rename that reaches the operating system, in order."""
    seen = []
    fsync, rename, replace = os.fsync, os.rename, os.replace

    def recorded_fsync(descriptor):
        seen.append(("fsync", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name))
        fsync(descriptor)

    def recorded(name, call):
        def renaming(source, target):
            seen.append((name, Path(source).name, Path(target).name))
            call(source, target)

        return renaming

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "rename", recorded("rename", rename))
    monkeypatch.setattr(os, "replace", recorded("replace", replace))
    return seen


def untokened(calls):
    """The calls without the random ends of trash names."""
    return [
        tuple(part.rpartition("-")[0] if part.startswith((".trash", ".link")) else part for part in call)
        for call in calls
    ]


def saved(folder, step=1, **changes):
    arguments = {"epoch": 0, "models": {"model": {"weight": torch.ones(3)}}, "rng": {"torch": torch.ones(2)}}
    return Checkpoints(folder, keep_last=2).save(step, **{**arguments, **changes})


def test_every_file_is_on_the_disk_before_the_folder_gets_its_name(tmp_path, calls):
    saved(tmp_path / "checkpoints")
    assert untokened(calls) == [
        ("fsync", tmp_path.name),
        ("fsync", "model.safetensors"),
        ("fsync", "models.pt"),
        ("fsync", "state.pt"),
        ("fsync", "rng-rank0.pt"),
        ("fsync", "manifest.json"),
        ("fsync", ".tmp-step-000001"),
        ("rename", ".tmp-step-000001", "step-000001"),
        ("fsync", "checkpoints"),
        ("replace", ".link-last", "last"),
    ]


def test_a_checkpoint_of_the_same_name_is_moved_aside_before_and_deleted_after(tmp_path, calls):
    saved(tmp_path / "checkpoints")
    calls.clear()
    saved(tmp_path / "checkpoints")
    assert untokened(calls)[5:9] == [
        ("fsync", ".tmp-step-000001"),
        ("rename", "step-000001", ".trash-step-000001"),
        ("rename", ".tmp-step-000001", "step-000001"),
        ("fsync", "checkpoints"),
    ]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["last", "step-000001"]


def test_an_old_checkpoint_is_renamed_before_it_is_deleted(tmp_path, calls):
    folder = tmp_path / "step-000001"
    folder.mkdir()
    (folder / "a").write_text("a")
    remove(folder)
    assert untokened(calls) == [("rename", "step-000001", ".trash-step-000001"), ("fsync", tmp_path.name)]
    assert list(tmp_path.iterdir()) == []


def test_where_the_new_folder_cannot_be_renamed_the_old_one_stays(tmp_path):
    final = tmp_path / "step-000001"
    final.mkdir()
    (final / "old").touch()
    with pytest.raises(FileNotFoundError):
        publish(tmp_path / "missing", final)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]

    fresh = tmp_path / ".tmp-step-000001"
    fresh.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        rename = os.rename

        def refusing(source, target):
            if Path(source) == fresh:
                raise OSError(errno.EIO, "broken")
            rename(source, target)

        patch.setattr(os, "rename", refusing)
        with pytest.raises(OSError, match="broken"):
            publish(fresh, final)
    assert (final / "old").exists()


def test_folders_that_are_made_are_on_the_disk(tmp_path, calls):
    make_folder(tmp_path / "runs" / "lab")
    make_folder(tmp_path / "runs" / "lab")
    assert calls == [("fsync", tmp_path.name), ("fsync", "runs")]


def test_a_file_knows_its_size_and_checksum(tmp_path):
    with DurableFile(tmp_path / "a") as file:
        file.write(b"1234")
        file.write(memoryview(b"56789"))
    assert (file.bytes, file.crc32, crc32_of(tmp_path / "a")) == (9, "cbf43926", "cbf43926")


def test_a_file_is_never_written_over(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError):
        DurableFile(tmp_path / "a")


def whole(folder):
    return (folder / "whole").exists()


@pytest.mark.parametrize(
    ("name_is_free", "is_whole", "back"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_trash_is_put_back_where_it_is_whole_and_its_name_is_free(tmp_path, name_is_free, is_whole, back):
    trash = tmp_path / ".trash-step-000001-1a2b3c4d"
    trash.mkdir()
    (trash / ("whole" if is_whole else "half")).touch()
    if not name_is_free:
        (tmp_path / "step-000001").mkdir()
    sweep(tmp_path, whole)
    assert not trash.exists()
    assert (tmp_path / "step-000001" / "whole").exists() == back
    assert (tmp_path / "step-000001").exists() == (back or not name_is_free)


def test_unfinished_folders_and_links_are_swept_and_nothing_else(tmp_path):
    for name in (".tmp-step-000002", "step-000001", "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / ".link-last-00").symlink_to("step-000001")
    sweep(tmp_path, whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "step-000001"]


def test_a_link_is_relative_and_replaced(tmp_path):
    for name in ("step-000001", "step-000002"):
        (tmp_path / name).mkdir()
        relink(tmp_path / "last", name)
    assert os.readlink(tmp_path / "last") == "step-000002"
    assert len(list(tmp_path.iterdir())) == 3


def test_where_links_are_not_possible_a_file_says_the_name(tmp_path, monkeypatch):
    def refusing(*_, **__):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(Path, "symlink_to", refusing)
    for name in ("step-000001", "step-000002"):
        relink(tmp_path / "last", name)
    assert (tmp_path / "last").read_text() == "step-000002\n"


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EFBIG, DiskFull), (errno.EROFS, UnwritableFolder),
     (errno.EACCES, UnwritableFolder), (errno.EIO, OSError)],
)  # fmt: skip
def test_failures_are_said_in_words(tmp_path, number, kind):
    with pytest.raises(kind) as caught:
        with failures_of(tmp_path):
            raise OSError(number, os.strerror(number))
    assert type(caught.value) is kind


def test_what_is_needed_and_free_is_said_before_anything_is_written(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    saved(folder)
    monkeypatch.setattr(files.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 3_000_000}))
    with pytest.raises(DiskFull) as caught:
        saved(folder, step=2)
    assert caught.value.expected == "needed 4.2 MB, free 3.0 MB"
    assert sorted(path.name for path in folder.iterdir()) == ["last", "step-000001"]
