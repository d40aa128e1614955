"""Check: the last position of padded results is read, which holds nothing of most samples.

Layers over packed sequences, and products with a mask, leave zeros behind the end of each sample. An index such as
``out[:, -1]`` then reads zeros for all samples but the longest, and these samples have one and the same result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from truestep.events import Site
from truestep.probes.active.trial import Trial
from truestep.probes.context.scene import Scene
from truestep.probes.copies.call import Path

_SEED = 3_456_781
_DIMS = 3
_LEAST_SAMPLES = 4
_SHARE = 2
"""One of so many samples, at least, must have nothing at the position."""
_MOST_READS = 32
_EQUAL = 1e-5
"""Largest difference of equal results, as a share of the differences to other samples."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Samples without influence on their results."""

    blank: int = 0
    """Number of samples with zeros at the position that is read, and with values at earlier ones."""
    read_at: Site | None = None
    """Line that reads this position."""


def ends(trial: Trial) -> Ends:
    """Return the samples with equal results, since a position is read that holds only zeros for them.

    Raises:
        Refused: the copy cannot be called.
    """
    samples, rows = trial.call.rows(trial.scene.torch)
    if samples < _LEAST_SAMPLES:
        return Ends()
    reads = _Reads(trial.scene, samples, rows)
    plain = trial.run(_SEED, mode=reads.functions())
    for blank, site in reads.found:
        if _differ(rows, blank) and any(_are_equal(one, blank) for one in plain if _has_rows(one, samples)):
            return Ends(int(blank.sum()), site)
    return Ends()


def _has_rows(result: Any, samples: int) -> bool:
    return bool(result.dim() > 0 and result.shape[0] == samples)


def _differ(rows: dict[Path, Any], blank: Any) -> bool:
    """Return True if the inputs of these samples differ."""
    parts = [value[blank.to(value.device)] for value in rows.values()]
    return any(bool((part != part[:1]).any()) for part in parts)


def _are_equal(result: Any, blank: Any) -> bool:
    """Return True if these samples have one result, and the others have other ones."""
    flat = result.reshape(len(result), -1).double()
    distances = (flat - flat[blank][0]).abs().amax(1)
    nearest = distances[~blank].min()
    return bool(nearest > 0 and distances[blank].max() <= _EQUAL * nearest)


class _Reads:
    """Finds reads of one position of sequences that are results of layers, during a run of the copy.

    Args:
        scene: the scene.
        samples: number of samples in the batch.
        rows: the arguments with a row for each.
    """

    def __init__(self, scene: Scene, samples: int, rows: dict[Path, Any]) -> None:
        self._scene = scene
        self._samples = samples
        self._rows = rows
        self.found: list[tuple[Any, Site | None]] = []
        """Samples without values at a position, and the line that reads it."""

    def functions(self) -> Any:
        """Return a torch function mode that records reads of positions."""
        torch, me = self._scene.torch, self
        selects = {torch.Tensor.__getitem__, torch.Tensor.select, torch.select}

        class Reads(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
            def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
                result = function(*args, **(kwargs or {}))
                if function in selects and len(me.found) < _MOST_READS:
                    me._read(args[0], result)
                return result

        return Reads()

    def _read(self, source: Any, result: Any) -> None:
        """Record a read of one position that holds zeros for many samples, which have values at others."""
        samples = self._samples
        if source.dim() != _DIMS or result.dim() != _DIMS - 1 or not source.is_floating_point():
            return
        if result.shape != (samples, source.shape[2]) or samples not in source.shape[:2]:
            return
        by_sample = source if source.shape[0] == samples else source.transpose(0, 1)
        if by_sample.shape[1] < 2 or any(_is_the_same(source, value) for value in self._rows.values()):
            return
        zero = (result == 0).all(1)
        blank = zero & (by_sample != 0).flatten(1).any(1)
        if _SHARE * int(blank.sum()) >= samples and not bool(zero.all()):
            self.found.append((blank, self._scene.site()))


def _is_the_same(source: Any, value: Any) -> bool:
    """Return True for an argument itself, of which the program may read any position."""
    return bool(source.shape == value.shape and (source == value).all())
