"""A folder of checkpoints: crash-safe, rolling, verified.

checkpoints/step-000123/    model.safetensors     one for each model
                            models.pt             state of the models that is not a dense tensor
                            state.pt              all other state; loads with `torch.load(weights_only=True)`
                            inference.json        preprocessing and settings, to prepare new inputs
                            rng-rank0.pt          one for each process
                            parts-rank0.safetensors   its rows of the tensors of optimizers, if they are divided
                            manifest.json         written last: sizes and checksums of all files
checkpoints/evaluated-000120/   weights with the best metric, if they changed between the evaluation and the save
checkpoints/last, best      links for users; only the manifests are read
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Protocol

from truestep.errors import BadCheckpoint, BadSettings
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.loop.checkpoint.content import Content, Evaluated
from truestep.loop.checkpoint.disk import files as files
from truestep.loop.checkpoint.disk.manifest import NAME, Manifest
from truestep.loop.checkpoint.disk.writer_thread import Background
from truestep.loop.checkpoint.listing import (
    by_metric,
    evaluated,
    first_sound,
    is_whole,
    kept,
    listed,
    refuse_remains,
    report,
)
from truestep.loop.checkpoint.parts import Written, check_present


class Copier(Protocol):
    """Copies finished checkpoints to another place, in another thread."""

    def copy(self) -> None:
        """Begin to copy new checkpoints; return at once."""

    def report(self) -> None:
        """Warn of copies that failed since the last call."""


class Checkpoints:
    """A folder of checkpoints. Only this process may write to it: hold a `FolderLock` on the run.

    The remains of a killed process are cleaned up at construction: unfinished folders are removed, and a finished one
    that was being replaced is restored.

    Args:
        folder: the folder, which is created if it is missing.
        keep_last: number of newest checkpoints to keep, at least 1; the best one is always kept.
        asynchronous: write in another thread while training continues. `save` then only copies all tensors, which needs
            as much memory again.

    Raises:
        UnwritableFolder: the folder cannot be created or written.

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
                f"keep_last must be a positive integer, got {keep_last}",
                remedy="keep at least one checkpoint, to resume from it",
            )
        self.folder = folder = folder.absolute()  # scripts change directories
        self.keep_last = keep_last
        self.asynchronous = asynchronous
        self.origin = ""
        """Path that the run was started from, if that was another checkpoint; written into each manifest."""
        self.run, self.claim = "", 0
        """Name of the run and number of its claim on a mirror; written into each manifest."""
        self.copier: Copier | None = None
        """Copies finished checkpoints to a mirror."""
        self._pins, self._pinning = list[Path](), Lock()
        self._outstays = False
        """True if the last `prune` left a checkpoint only because it was pinned."""
        self._background = Background("truestep-checkpoint")
        self._proved = False
        self._judged: tuple[int, float | None, str] = (-1, None, "min")
        try:
            with files.failures_of(folder):
                files.make_folder(folder)
                files.sweep(folder, is_whole=is_whole)
                probe = folder / f".link-{id(self):x}"
                probe.touch()
                probe.unlink()
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise files.unwritable(folder, error) from error
        self._saves = 0
        self.look()

    def look(self) -> None:
        """Go on from the newest checkpoint in the folder: its count of saves, its metric, its run and claim."""
        newest = next(iter(listed(self.folder)), None)
        if newest is not None:
            manifest = newest.manifest
            self._saves, self.run, self.claim = manifest.save, manifest.run, manifest.claim
            self._remember(manifest)

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
        parts: Written | None = None,
        documents: Mapping[str, str] | None = None,
    ) -> Path:
        """Write a checkpoint; then remove those that are neither among the last nor the best.

        Args:
            step: number of optimizer steps. A checkpoint of the same step is replaced.
            epoch: number of completed epochs.
            models: the `state_dict` of each model, by name.
            state: all other state: containers of numbers, text, tensors and arrays.
            rng: random states of this process, or of each process in the order of ranks.
            metric: metric that selects the best checkpoint; None or nan is never best. If the previous save was of the
                same step, None keeps its metric.
            mode: "min" if the lowest metric is best, "max" if the highest.
            evaluated: earlier weights with their metric, saved in a folder beside it while they are the best.
            parts: files that the ranks have written into the folder of `begin`.
            documents: texts of more files, by file name.

        Returns:
            The folder of the checkpoint; if asynchronous, it exists after `wait()`.

        Raises:
            UnsavableState: an object in the state cannot be restored from a file; nothing was written.
            DiskFull: the checkpoint does not fit on the disk; it was removed, and earlier ones are intact.
            UnwritableFolder: the folder has become read-only.
            BaseException: error of the last asynchronous save.
        """
        self.wait()
        if self.copier is not None:
            self.copier.report()
        if mode not in ("min", "max"):
            raise BadSettings(
                f'mode must be "min" or "max", got {mode!r}',
                remedy='pass mode="min" for a loss, "max" for an accuracy',
            )
        if metric is None and step == self._judged[0]:
            metric, mode = self._judged[1:]
        ranks = [rng] if isinstance(rng, Mapping) else list(rng)
        content = Content.of(models, state or {}, ranks, copies=self.asynchronous, documents=documents)
        self._saves += 1
        self._judged = (step, metric, mode)
        manifest = Manifest(
            step=int(step),
            epoch=int(epoch),
            save=self._saves,
            metric=None if metric is None else float(metric),
            mode=mode,
            origin=self.origin,
            claim=self.claim,
            run=self.run,
        )
        final = self.folder / f"step-{manifest.step:06d}"
        if self.asynchronous:
            self._background.start(lambda: self._write(final, content, manifest, evaluated, parts))
        else:
            self._write(final, content, manifest, evaluated, parts)
        return final

    def begin(self, step: int, size: int) -> Path:
        """Return the folder of an unfinished checkpoint, in which ranks write their parts; `save` completes it.

        Errors are those of `save`.

        Args:
            step: number of optimizer steps.
            size: of all parts, in bytes.
        """
        self.wait()
        fresh = files.temporary(self.folder / f"step-{step:06d}")
        with files.failures_of(self.folder):
            files.require_space(self.folder, size)
            files.discard(fresh)
            fresh.mkdir()
        return fresh

    def would_be_best(self, metric: float, mode: str) -> bool:
        """Return True if no checkpoint has a better metric."""
        self.wait()
        best = next(iter(by_metric([*listed(self.folder), *evaluated(self.folder)])), None)
        if best is None or best.metric is None or math.isnan(metric):
            return not math.isnan(metric)
        return metric >= best.metric if mode == "max" else metric <= best.metric

    def wait(self) -> None:
        """Wait until every checkpoint is on the disk.

        Raises:
            BaseException: error of an asynchronous save.
        """
        self._background.wait()

    def newest(self) -> Checkpoint | None:
        """Return the checkpoint saved last, verified; None if there is none.

        A damaged one is left unchanged, with the warning `BrokenCheckpoint`, and the one before it is returned.

        Raises:
            BadCheckpoint: there are checkpoints, and all are invalid.
        """
        self.wait()
        faults: list[BadCheckpoint] = []
        found = first_sound(listed(self.folder, faults=faults), faults)
        if found is None:
            refuse_remains(self.folder, faults)
        return found

    def best(self) -> Checkpoint | None:
        """Return the checkpoint with the best metric, verified; of equal ones, the newest; None without one."""
        self.wait()
        faults: list[BadCheckpoint] = []
        found = first_sound(by_metric([*listed(self.folder, faults=faults), *evaluated(self.folder)]), faults)
        if found is None:
            for fault in faults:
                report(fault)
        return found

    def renew(self, checkpoint: Checkpoint) -> Checkpoint:
        """Make a checkpoint of this folder the newest, as if it had been saved just now; return it.

        A run that resumes from an older checkpoint does this first. If it is killed before its first save, it then
        resumes from the same one again, not from the newer ones that it went back from.
        """
        self._remember(checkpoint.manifest)
        newest = next(iter(listed(self.folder)), checkpoint)
        if checkpoint.manifest.order == newest.manifest.order:
            return checkpoint
        self._saves += 1
        fresh = checkpoint.path / f".{NAME}"
        with files.failures_of(self.folder):
            fresh.unlink(missing_ok=True)
            with files.DurableFile(fresh) as file:
                now: dict[str, Any] = {
                    "save": self._saves,
                    "origin": self.origin,
                    "claim": self.claim,
                    "run": self.run,
                }
                file.write(replace(checkpoint.manifest, **now).text().encode())
            fresh.replace(checkpoint.path / NAME)
            files.flush_folder(checkpoint.path)
            files.relink(self.folder / "last", checkpoint.path.name)
        return Checkpoint(checkpoint.path)

    def _remember(self, manifest: Manifest) -> None:
        """Remember the metric of the checkpoint that the run resumes from, as after `save`."""
        self._judged = (manifest.step, manifest.metric, manifest.mode)

    def _write(
        self,
        final: Path,
        content: Content,
        manifest: Manifest,
        weights: Evaluated | None,
        parts: Written | None,
    ) -> None:
        with files.failures_of(self.folder):
            beside = None if weights is None else weights.content
            files.require_space(self.folder, content.bytes + (0 if beside is None else beside.bytes))
            if weights is not None and beside is not None:  # first, so that a run killed between the two does it again
                of: dict[str, Any] = {
                    "step": weights.step,
                    "epoch": weights.epoch,
                    "metric": weights.metric,
                    "mode": weights.mode,
                }
                self._publish(self.folder / f"evaluated-{weights.step:06d}", beside, replace(manifest, **of))
            self._publish(final, content, manifest, parts)
            files.relink(self.folder / "last", final.name)
            self.prune()
        if self.copier is not None:
            self.copier.copy()

    def prune(self) -> None:
        """Remove the checkpoints that are neither among the last nor the best, nor pinned; point `best` at the best."""
        whole, judged = listed(self.folder), evaluated(self.folder)
        best = next(iter(by_metric([*whole, *judged])), None)
        if best is not None:
            files.relink(self.folder / "best", best.path.name)
        stays = {checkpoint.path for checkpoint in kept(whole, judged, self.keep_last)}
        self._outstays = False
        for checkpoint in [*whole, *judged]:
            if checkpoint.path in stays:
                continue
            with self._pinning:
                if checkpoint.path in self._pins:
                    self._outstays = True
                else:
                    files.remove(checkpoint.path)

    def prune_pinned(self) -> None:
        """Remove the checkpoints that the last `prune` left because they were pinned."""
        if self._outstays:
            self.prune()

    @contextmanager
    def pinned(self, path: Path) -> Iterator[None]:
        """Context manager: keep a checkpoint on the disk while another thread reads it."""
        with self._pinning:
            self._pins.append(path)
        try:
            yield
        finally:
            with self._pinning:
                self._pins.remove(path)

    def _publish(self, final: Path, content: Content, manifest: Manifest, parts: Written | None = None) -> None:
        fresh = files.temporary(final)
        try:
            if parts is None:
                fresh.mkdir()
            else:
                check_present(fresh, parts)
            content.write(fresh, manifest, proving=not self._proved, parts=parts)
            files.publish(fresh, final)
        except BaseException:
            files.discard(fresh)
            raise
        self._proved = True
