"""Mirrors of folders of checkpoints, opened and compared with the disk."""

import contextlib

import torch

from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.listing import evaluated, listed
from truestep.loop.checkpoint.remote.copies import Copies, name_of
from truestep.loop.checkpoint.remote.opening import open_mirror
from truestep.loop.checkpoint.remote.storage import Storage

LOG = "metrics.jsonl"


def opened(folder, url, start=None, *, keep_last=3):
    """Return the checkpoints in a folder and their mirror."""
    checkpoints = Checkpoints(folder / "checkpoints", keep_last=keep_last)
    mirror = open_mirror(url, checkpoints, start, [folder / LOG], make_room=lambda: None)
    return checkpoints, mirror


@contextlib.contextmanager
def mirrored(folder, url, start=None, *, keep_last=3):
    """The same; waits for the mirror at the end."""
    checkpoints, mirror = opened(folder, url, start, keep_last=keep_last)
    yield checkpoints
    mirror.close()


def save(checkpoints, step, content="x", **changes):
    """Save weights of ones, and a state with the content; the log has grown by a line."""
    with (checkpoints.folder.parent / LOG).open("a") as log:
        log.write(f"{step}\n")
    options = {"epoch": 0, "models": {"model": {"weight": torch.ones(3) * step}}, "state": {"is": content}}
    return checkpoints.save(step, **{**options, **changes}, rng={"torch": torch.zeros(1)})


def names(url):
    """Return the names of the whole copies in a mirror, newest first."""
    found, _ = Copies(Storage(url)).look()
    return [one.name for one in found if not one.fault]


def names_on_disk(checkpoints):
    folder = checkpoints.folder
    return [name_of(one.path, one.manifest) for one in [*listed(folder), *evaluated(folder)]]


def objects(url):
    """Return the content of every object in a mirror."""
    storage = Storage(url)
    return {name: storage.read(name) for name in storage.files("")}


def put(url, name, content):
    Storage(url).write(name, content)
