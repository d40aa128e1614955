"""Advice on the machine: threads, memory, shared memory, file handles, disk."""

from __future__ import annotations

from collections.abc import Iterator

from truestep.doctor.advice.advice import GIB, MIB, Advice, Level, plural, size
from truestep.doctor.facts import Facts, Folder

_LEAST_SPACE = 256 * MIB
_LITTLE_SPACE = 5 * GIB
_LITTLE_MEMORY = 2 * GIB
_LITTLE_SHARED = GIB
_CROWDED = 1.5
"""Load per processor above which the machine is called busy."""
_FEW_HANDLES = 4096
_FEW_FILES = 1000
_SLOW_DISK = 50 * MIB
_CHECKPOINTS = 5
"""Most checkpoints of a run at a time, by default: the last three, the best, and the one being written."""
_BYTES_PER_PARAMETER = 12
"""Size of a checkpoint of fp32 weights with both moments of Adam."""


def on_threads(facts: Facts) -> Iterator[Advice]:
    threads, processors = facts.torch.threads, facts.processors
    if processors.load is not None and processors.load > processors.present * _CROWDED:
        text = (
            f"{processors.load:.0f} threads competed for {plural(processors.present, 'processor')} in the last minute "
            "(mean), so training gets only a share; find out who runs them"
        )
        yield Advice(Level.WARNING, "processors-crowded", "threads", text, "top")
    ranks = _number(facts.variable("LOCAL_WORLD_SIZE")) or 1
    share = max(1, processors.usable // ranks)
    if threads is None:
        return
    if threads > share:
        whose = f" each of {ranks} ranks" if ranks > 1 else " this process"
        text = f"torch computes with {plural(threads, 'thread')}, but{whose} has {plural(share, 'processor')}"
        yield Advice(Level.WARNING, "threads-too-many", "threads", text, f"export OMP_NUM_THREADS={share}")
    setter = next((name for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if facts.variable(name)), None)
    alone = ranks == 1 and not facts.variable("RANK") and (processors.load or 0) < processors.present
    if setter and alone and threads < processors.useful:
        text = (
            f"{setter}={facts.variable(setter)} leaves {processors.useful - threads} of "
            f"{plural(processors.useful, 'core')} idle; keep it only if several trainings share this machine"
        )
        yield Advice(Level.WARNING, "threads-too-few", "threads", text, f"unset {setter}")
    if processors.usable == 1 and not facts.accelerators:
        text = "there is only one processor; set num_workers=0, so that a loader does not compete with the training"
        yield Advice(Level.HINT, "threads-one", "threads", text)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def on_memory(facts: Facts) -> Iterator[Advice]:
    memory = facts.memory
    free, command = memory.free, ""
    if free is None or free >= _LITTLE_MEMORY:
        return
    if free == memory.limit_free and memory.limit is not None:
        text = (
            f"{size(free)} is left of this process's limit of {size(memory.limit)}, and the kernel kills processes "
            "that take more; request more memory (docker run --memory, or the option of the batch system)"
        )
    else:
        text = f"only {size(free)} is free, and the kernel kills processes that take more; end other programs"
        command = "ps aux --sort -rss | head"
    yield Advice(Level.WARNING, "memory-low", "memory", text, command)


def on_shared(facts: Facts) -> Iterator[Advice]:
    shared = facts.shared
    if shared is None:
        return
    workers = f"the workers of a DataLoader pass their batches through {shared.path}"
    if not shared.writable:
        text = f"{workers}, but this user cannot write there; set num_workers=0, or make it writable"
        yield Advice(Level.WARNING, "shared-memory-closed", "shared memory", text)
    elif shared.free < _LITTLE_SHARED:
        command = ""
        if shared.total >= _LITTLE_SHARED:
            remedy, command = "remove leftovers of dead processes", f"ls -l {shared.path}"
        elif facts.interpreter.container:
            remedy = f"start the container with --shm-size={_fitting(facts)}g, or set num_workers=0"
        else:
            remedy = "enlarge it as root, or set num_workers=0"
            command = f"mount -o remount,size={_fitting(facts)}G {shared.path}"
        text = f"{workers}, and crash when its {size(shared.free)} are full; {remedy}"
        yield Advice(Level.WARNING, "shared-memory-small", "shared memory", text, command)


def _fitting(facts: Facts) -> int:
    """Return half of the memory in GiB, the default of Linux."""
    memory = facts.memory.limit or facts.memory.total or 16 * GIB
    return max(1, memory // 2 // GIB)


def on_handles(facts: Facts) -> Iterator[Advice]:
    handles = facts.handles
    if handles is None or handles.soft is None or handles.soft >= _FEW_HANDLES:
        return
    if facts.torch.sharing not in (None, "file_descriptor"):
        return
    wanted = 65536 if handles.hard is None else min(handles.hard, 65536)
    text = f"each tensor from a worker keeps a file open; a loop that keeps {handles.soft} of them crashes"
    command = f"ulimit -n {wanted}"
    if wanted <= handles.soft:
        text += '; call torch.multiprocessing.set_sharing_strategy("file_system")'
        command = ""
    yield Advice(Level.HINT, "handles-few", "open files", text, command)


def on_folders(facts: Facts) -> Iterator[Advice]:
    for folder in facts.folders:
        yield from _on_folder(folder)
        if folder.role == "runs" and folder.failure is None:
            yield from _on_loss(folder, facts)


def _on_loss(folder: Folder, facts: Facts) -> Iterator[Advice]:
    """Yield advice on folders that do not outlive the machine or the container."""
    if folder.system in ("tmpfs", "ramfs"):
        text = f"{folder.system} is in memory: runs use it up, and are lost when the machine stops; keep them on a disk"
        yield Advice(Level.HINT, "runs-folder-in-memory", "disk", text)
    elif folder.system in ("overlay", "aufs") and facts.interpreter.container:
        text = "files there are lost when the container is removed; keep runs in a volume of the host"
        yield Advice(Level.HINT, "runs-folder-in-container", "disk", text)


def _on_folder(folder: Folder) -> Iterator[Advice]:
    runs = folder.role == "runs"
    about = "disk" if runs else "temp folder"
    if folder.failure is not None and not (folder.free is not None and folder.free < _LEAST_SPACE):
        remedy = "keep runs in another folder" if runs else "set TMPDIR to another folder"
        slug = f"{folder.role}-folder-read-only" if folder.read_only else f"{folder.role}-folder-fails"
        yield Advice(Level.PROBLEM, slug, about, f"nothing can be written there ({folder.failure}); {remedy}")
        return
    if folder.free is not None and folder.free < _LEAST_SPACE:
        where = "checkpoints do not fit" if runs else "torch.compile and many libraries write there"
        remedy = "free space, or keep runs on another disk" if runs else "free space, or set TMPDIR to another disk"
        level = Level.PROBLEM if runs else Level.WARNING
        yield Advice(level, f"{folder.role}-folder-full", about, f"{size(folder.free)} free: {where}; {remedy}")
    elif runs and folder.free is not None and folder.free < _LITTLE_SPACE:
        million = folder.free / (_CHECKPOINTS * _BYTES_PER_PARAMETER) / 1e6
        text = (
            f"{size(folder.free)} are enough for the checkpoints that Run keeps by default ({_CHECKPOINTS} at most), "
            f"for a model with Adam and up to {million:.0f} million parameters; else free space, or lower keep_last"
        )
        yield Advice(Level.WARNING, "runs-folder-small", about, text)
    if folder.files_free is not None and folder.files_free < _FEW_FILES:
        text = f"the file system can hold {plural(folder.files_free, 'more file')}; remove some, of any size"
        yield Advice(Level.WARNING, f"{folder.role}-folder-files", about, text)
    if runs and folder.write_speed is not None and folder.write_speed < _SLOW_DISK:
        text = (
            f"a checkpoint of 1 GiB takes {GIB / folder.write_speed:.0f} s to write; Run(asynchronous=True) "
            "writes it while training goes on"
        )
        yield Advice(Level.HINT, "runs-folder-slow", about, text)
