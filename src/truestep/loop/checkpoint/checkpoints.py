"""A folder of checkpoints: crash-safe, rolling, verified.

checkpoints/step-000123/    model.safetensors     one for each model
                            models.pt             what of the models is no dense tensor
                            state.pt              all other state; loads with `torch.load(weights_only=True)`
                            rng-rank0.pt          one for each process
                            manifest.json         written last: sizes and checksums of all
checkpoints/evaluated-000120/   where the best metric is that of weights which changed before the next checkpoint: these
checkpoints/last, best      links for people; the manifests are the truth
"""

from __future__ import annotations

import math
import os
import re
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from truestep.errors import BadCheckpoint, BadSettings, BrokenCheckpoint
from truestep.loop.checkpoint import files as files
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.content import Content, Evaluated
from truestep.loop.checkpoint.manifest import NAME, Manifest
from truestep.loop.checkpoint.writer_thread import Background
from truestep.loop.process.stacklevel import outside

_NAME_OF_ONE = re.compile(r"step-\d{6,}")
_SHOWN = 3


def numbered(folder: Path) -> list[Path]:
    """Return the folders that bear the name of a checkpoint, whole or not, sorted by name."""
    return sorted(path for path in folder.glob("step-*") if _NAME_OF_ONE.fullmatch(path.name))


def evaluated(folder: Path) -> list[Checkpoint]:
    """Return the finished checkpoints in a folder that hold the weights of a metric and nothing else."""
    return [Checkpoint(path) for path in sorted(folder.glob("evaluated-*")) if _is_whole(path)]


def listed(folder: Path, *, faults: list[BadCheckpoint] | None = None) -> list[Checkpoint]:
    """Return the finished checkpoints in a folder, the newest first; newest by the count of saves, not by any clock.

    Args:
        folder: a `checkpoints` folder.
        faults: gets an error for each one that is not whole.
    """
    found = []
    for path in numbered(folder):
        try:
            found.append(Checkpoint(path))
        except BadCheckpoint as error:
            if faults is not None:
                faults.append(error)
    return sorted(found, key=lambda checkpoint: checkpoint.manifest.save, reverse=True)


def _first_sound(checkpoints: Iterable[Checkpoint], faults: list[BadCheckpoint]) -> Checkpoint | None:
    """Return the first one whose files match their checksums, with a warning for each fault; None if none does."""
    for checkpoint in checkpoints:
        try:
            checkpoint.verify()
        except BadCheckpoint as error:
            faults.append(error)
        else:
            for fault in faults:
                _tell(fault)
            return checkpoint
    return None


def _refuse(folder: Path, faults: Sequence[BadCheckpoint]) -> None:
    """Raise an error if a folder has checkpoints of which none is whole: a start would overwrite what is left of them.

    Raises:
        BadCheckpoint: says what each of the newest ones lacks.
    """
    if not faults or len(faults) < len(numbered(folder)):
        return
    said = sorted((fault.happened.removeprefix("the checkpoint ") for fault in faults), reverse=True)[:_SHOWN]
    raise BadCheckpoint(
        f"none of the {len(faults)} checkpoints in {folder} is whole, and nothing was changed there"
        if len(faults) > 1
        else f"the only checkpoint in {folder} is not whole, and nothing was changed there",
        expected="; ".join(text.replace(f"{folder}{os.sep}", "") for text in said),
        remedy="copy the files from a backup, pass resume= with a checkpoint elsewhere, or another out= to begin again",
    )


def _tell(error: BadCheckpoint) -> None:
    warnings.warn(f"{error.happened}; it is left alone", BrokenCheckpoint, stacklevel=outside())


def _judged(checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
    """Return those with a metric, the best first, of equals the newest."""
    judged = [found for found in checkpoints if found.metric is not None and not math.isnan(found.metric)]
    judged.sort(key=lambda found: found.manifest.save, reverse=True)
    sign = -1.0 if judged and judged[0].manifest.mode == "max" else 1.0
    return sorted(judged, key=lambda found: sign * (found.metric or 0.0))


def find(path: Path | str) -> Checkpoint:
    """Return the checkpoint that a path means, verified. Nothing is written.

    Args:
        path: a checkpoint; a folder of checkpoints or of a run, for the newest in it; or one of these and `last` or
            `best`.

    Raises:
        BadCheckpoint: there is none, or it is damaged.
    """
    path = Path(path)
    if (path / NAME).exists() or (path.is_dir() and path.name.startswith("step-")):
        checkpoint = Checkpoint(path.resolve() if path.is_symlink() else path)
        checkpoint.verify()
        return checkpoint
    named = path.name in ("last", "best") and not path.is_dir()
    folder = _folder_of(path.parent if named else path)
    if folder is not None:
        faults: list[BadCheckpoint] = []
        candidates = listed(folder, faults=faults)
        by_metric = named and path.name == "best"
        found = _first_sound(_judged([*candidates, *evaluated(folder)]) if by_metric else candidates, faults)
        if found is not None:
            return found
        _refuse(folder, faults)
    raise BadCheckpoint(
        f"no checkpoint at {path}",
        expected=f"a folder with a {NAME}, or a run; got {_what_is(path)}",
        remedy="give the folder of a run, or one of the folders in its checkpoints/",
    )


def _folder_of(path: Path) -> Path | None:
    """The folder of checkpoints that a path is or holds."""
    for folder in (path / "checkpoints", path):
        if numbered(folder):
            return folder
    return None


def _what_is(path: Path) -> str:
    if not path.exists():
        return "nothing"
    if not path.is_dir():
        return "a file"
    return f"a folder with {', '.join(sorted(entry.name for entry in path.iterdir())[:5]) or 'nothing in it'}"


class Checkpoints:
    """A folder of checkpoints that this process alone writes; hold its run with a `FolderLock`.

    What a killed process left is cleared away at once: unfinished folders go, and a finished one that was being
    replaced is put back.

    Args:
        folder: made if it is missing.
        keep_last: how many of the newest are kept, at least 1; the best one is kept in any case.
        asynchronous: whether to write in another thread, while training goes on. Saving then takes as long as a copy
            of all tensors, and that much memory.

    Raises:
        UnwritableFolder: the folder cannot be made or written.

    Example:
        >>> import tempfile, torch
        >>> folder = tempfile.TemporaryDirectory()
        >>> checkpoints = Checkpoints(Path(folder.name), keep_last=2)
        >>> net = torch.nn.Linear(2, 1)
        >>> for step in (10, 20, 30):
        ...     path = checkpoints.save(step, epoch=0, models={"model": net.state_dict()}, metric=step / 10)
        >>> checkpoints.newest().step, checkpoints.best().step
        (30, 10)
        >>> sorted(entry.name for entry in Path(folder.name).iterdir())
        ['best', 'last', 'step-000010', 'step-000020', 'step-000030']
        >>> checkpoints.newest().model("model").keys()
        odict_keys(['weight', 'bias'])
        >>> folder.cleanup()
    """

    def __init__(self, folder: Path, *, keep_last: int = 3, asynchronous: bool = False) -> None:
        if keep_last < 1:
            raise BadSettings(
                f"keep_last is {keep_last}",
                expected="at least 1",
                remedy="keep the last one at least, to resume from it",
            )
        self.folder = folder = folder.absolute()  # scripts change directories
        self.keep_last = keep_last
        self.asynchronous = asynchronous
        self.origin = ""
        """Where the run was begun from, if that was another checkpoint; written into each manifest."""
        self.last_stall_s = 0.0
        """How long the last `save` kept the training waiting."""
        self._background = Background("truestep-checkpoint")
        self._proved = False
        self._judged: tuple[int, float | None, str] = (-1, None, "min")
        try:
            with files.failures_of(folder):
                files.make_folder(folder)
                files.sweep(folder, is_whole=_is_whole)
                probe = folder / f".link-{id(self):x}"
                probe.touch()
                probe.unlink()
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise files.unwritable(folder, error) from error
        newest = next(iter(listed(folder)), None)
        self._saves = 0 if newest is None else newest.manifest.save
        if newest is not None:
            self._remember(newest.manifest)

    def save(
        self,
        step: int,
        *,
        epoch: int,
        models: Mapping[str, Mapping[str, Any]],
        state: Mapping[str, Any] | None = None,
        rng: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
        metric: float | None = None,
        mode: Literal["min", "max"] | str = "min",
        evaluated: Evaluated | None = None,
    ) -> Path:
        """Write a checkpoint; then remove those that are neither among the last nor the best.

        Args:
            step: optimizer updates taken. A checkpoint of the same step is replaced.
            epoch: epochs that have ended.
            models: the `state_dict` of each model, by name.
            state: everything else: containers of numbers, text, tensors and arrays.
            rng: random states of this process, or of each in the order of ranks.
            metric: what "best" is judged by; None or nan is never best. The step saved just before, saved again with
                None, keeps its metric.
            mode: whether the lowest ("min") or the highest ("max") is best.
            evaluated: weights with a metric that were not these any more; kept beside it while they are best.

        Returns:
            The folder of the checkpoint; if asynchronous, it is there after `wait()`.

        Raises:
            UnsavableState: something in the state does not come back from a file; nothing was written.
            DiskFull: it does not fit; nothing is left of it, and earlier checkpoints are untouched.
            UnwritableFolder: the folder has become read-only.
            BaseException: what went wrong in the last asynchronous save.
        """
        begun = time.perf_counter()
        self.wait()
        if mode not in ("min", "max"):
            raise BadSettings(
                f"mode is {mode!r}",
                expected='"min" or "max"',
                remedy='pass mode="min" for a loss, "max" for an accuracy',
            )
        if metric is None and step == self._judged[0]:
            metric, mode = self._judged[1:]
        ranks = [rng] if isinstance(rng, Mapping) else list(rng)
        content = Content.of(models, state or {}, ranks, copies=self.asynchronous)
        self._saves += 1
        self._judged = (step, metric, mode)
        manifest = Manifest(
            step=int(step),
            epoch=int(epoch),
            save=self._saves,
            metric=None if metric is None else float(metric),
            mode=mode,
            origin=self.origin,
        )
        final = self.folder / f"step-{manifest.step:06d}"
        if self.asynchronous:
            self._background.start(lambda: self._write(final, content, manifest, evaluated))
        else:
            self._write(final, content, manifest, evaluated)
        self.last_stall_s = time.perf_counter() - begun
        return final

    def would_be_best(self, metric: float, mode: str) -> bool:
        """Return True if no checkpoint has a better metric."""
        self.wait()
        best = next(iter(_judged([*listed(self.folder), *evaluated(self.folder)])), None)
        if best is None or best.metric is None or math.isnan(metric):
            return not math.isnan(metric)
        return metric >= best.metric if mode == "max" else metric <= best.metric

    def wait(self) -> None:
        """Return when every checkpoint is on the disk.

        Raises:
            BaseException: what went wrong in an asynchronous save.
        """
        self._background.wait()

    def newest(self) -> Checkpoint | None:
        """Return the checkpoint saved last, verified; None if there is none.

        One that is damaged is left alone, with the warning `BrokenCheckpoint`, and the one before it is taken.

        Raises:
            BadCheckpoint: there are checkpoints, and none of them is whole.
        """
        self.wait()
        faults: list[BadCheckpoint] = []
        found = _first_sound(listed(self.folder, faults=faults), faults)
        if found is None:
            _refuse(self.folder, faults)
        return found

    def best(self) -> Checkpoint | None:
        """Return the verified checkpoint with the best metric, of equals the newest; None if none has a metric."""
        self.wait()
        faults: list[BadCheckpoint] = []
        found = _first_sound(_judged([*listed(self.folder, faults=faults), *evaluated(self.folder)]), faults)
        if found is None:
            for fault in faults:
                _tell(fault)
        return found

    def renew(self, checkpoint: Checkpoint) -> Checkpoint:
        """Make a checkpoint of this folder the newest, as if it had been saved just now; return it.

        A run that goes on from an older one does this first: killed before its first save, it goes on from there
        again, and not from those that it left behind.
        """
        self._remember(checkpoint.manifest)
        if checkpoint.manifest.save == self._saves:
            return checkpoint
        self._saves += 1
        fresh = checkpoint.path / f".{NAME}"
        with files.failures_of(self.folder):
            fresh.unlink(missing_ok=True)
            with files.DurableFile(fresh) as file:
                file.write(replace(checkpoint.manifest, save=self._saves, origin=self.origin).text().encode())
            fresh.replace(checkpoint.path / NAME)
            files.flush_folder(checkpoint.path)
            files.relink(self.folder / "last", checkpoint.path.name)
        return Checkpoint(checkpoint.path)

    def _remember(self, manifest: Manifest) -> None:
        """Keep the metric of a checkpoint that the run goes on from, as after a save of its own."""
        self._judged = (manifest.step, manifest.metric, manifest.mode)

    def _write(self, final: Path, content: Content, manifest: Manifest, weights: Evaluated | None) -> None:
        with files.failures_of(self.folder):
            beside = None if weights is None else weights.content
            files.require_space(self.folder, content.bytes + (0 if beside is None else beside.bytes))
            if weights is not None and beside is not None:  # first: a run that is killed now comes here again
                of: dict[str, Any] = {
                    "step": weights.step,
                    "epoch": weights.epoch,
                    "metric": weights.metric,
                    "mode": weights.mode,
                }
                self._publish(self.folder / f"evaluated-{weights.step:06d}", beside, replace(manifest, **of))
            self._publish(final, content, manifest)
            whole, judged = listed(self.folder), evaluated(self.folder)
            best = next(iter(_judged([*whole, *judged])), None)
            files.relink(self.folder / "last", final.name)
            if best is not None:
                files.relink(self.folder / "best", best.path.name)
            for checkpoint in [*whole[self.keep_last :], *judged]:
                if best is None or checkpoint.path != best.path:
                    files.remove(checkpoint.path)

    def _publish(self, final: Path, content: Content, manifest: Manifest) -> None:
        fresh = files.temporary(final)
        try:
            fresh.mkdir()
            content.write(fresh, manifest, proving=not self._proved)
            files.publish(fresh, final)
        except BaseException:
            files.discard(fresh)
            raise
        self._proved = True


def _is_whole(path: Path) -> bool:
    try:
        Checkpoint(path)
    except BadCheckpoint:
        return False
    return True
