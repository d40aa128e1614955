"""Find models with the same output for all samples of a batch: compared at sampled steps, once for each model."""

from __future__ import annotations

import weakref
from typing import Any

from truestep.events import OutputsCompared, Site
from truestep.probes.context.scene import Scene
from truestep.probes.forward.model import Model

_LEAST_ROWS = 4
_LARGEST = 1 << 22
_INPUTS_DIFFER = 1e-3
_ROUNDINGS = 4
"""Largest difference of equal rows, in roundings of their largest value."""
_COLUMN = 1e-4
"""Largest difference in a column of equal rows, as a share of the largest value in the column."""
_BEGINNING = 8
_LEAST_WEIGHTS = 2
_MOST_LAYERS = 2000
_MOST_PARTS = 4
"""Most results of one call that are compared together."""
_BY_ROW = tuple(
    f"torch.nn.modules.{name}"
    for name in ("activation", "linear", "conv", "batchnorm", "normalization", "instancenorm", "dropout", "pooling")
)
"""Modules with the layers that process the rows of a batch separately, except for the statistics of a batch."""


class Outputs:
    """Compares the rows of models' outputs. If they are equal, those of the layers are compared at the next look."""

    def __init__(self, scene: Scene) -> None:
        from torch._C import _functorch

        self._scene = scene
        self._tensor = scene.torch.Tensor
        self._wrapped = _functorch.is_functorch_wrapped_tensor
        self._compared: dict[int, int] = {}
        """Step of the latest comparison by model."""
        self._rows: dict[int, list[float]] = {}
        """Beginning of the common row at the latest look, by model."""
        self._samples = 0
        self._layer: tuple[weakref.ref[Any], bool] | None = None
        self.following = False
        """True while the layers of the current call are compared, up to the first one with equal rows."""
        self._reached = False
        """True if a layer of the current call returned rows that differ."""

    def begin(self, model: Model, args: tuple[Any, ...]) -> None:
        """Examine the input of an outermost call: a call is compared if the samples of its batch differ."""
        self._samples, self._layer, self.following, self._reached = 0, None, False, False
        scene = self._scene
        if not args or self._compared.get(model.number) == scene.sampling.step:
            return
        x = args[0]
        if not self._readable(x) or x.shape[0] < _LEAST_ROWS:
            return
        with scene.sampling.timed(x):
            flat = x.detach().reshape(x.shape[0], -1)
            flat = flat.double() if x.is_floating_point() else flat
            gap = (flat - flat[:1]).abs().amax(1) if flat.dtype != scene.torch.bool else (flat ^ flat[:1]).any(1)
            least = _INPUTS_DIFFER * flat.abs().max() if x.is_floating_point() else 0
            if int((gap > least).sum()) >= _LEAST_ROWS - 1:
                self._samples = int(x.shape[0])
                self.following = model.number in self._rows

    def entering(self, module: Any, args: tuple[Any, ...]) -> tuple[Any, str]:
        """Return an inner layer and the kind of its input: "differing" rows, equal rows of "plain" numbers, or ""."""
        given = ""
        for x in args[:1]:
            if self._is_batch(x):
                given = "differing" if self._common_row(x) is None else "plain" if _is_plain(x) else ""
            elif self._readable(x) and x.shape[0] == self._samples:
                given = "differing"
        return module, given

    def left(self, entered: tuple[Any, str], result: Any) -> None:
        """Examine the result of an inner layer, in the order in which layers return: find the one that made rows equal.

        Equal rows are expected of a model that mixes its samples, or that computes an output without them. Here they
        come from a layer of torch that processes each row separately; or from an activation with one plain number for
        all samples that a layer with weights follows, since the last activation may be saturated for good reasons.
        """
        module, given = entered
        if not self.following or not self._is_batch(result):
            return
        weight = module._parameters.get("weight")
        weighted = weight is not None and weight.dim() > 1
        if self._layer is not None:
            self.following = not weighted
            return
        if self._common_row(result) is None:
            self._reached = True
            return
        by_itself = given == "differing" and type(module).__module__.startswith(_BY_ROW) and not module._modules
        if by_itself or (given == "plain" and self._reached and weighted):
            self._layer = weakref.ref(module), not bool(result.detach().any())
            self.following = by_itself
        else:
            self.following = False

    def end(self, model: Model, module: Any, site: Site | None, result: Any) -> None:
        """Compare the rows of the result of an outermost call."""
        samples, self._samples = self._samples, 0
        layer, self._layer = None if self.following else self._layer, None
        self.following = False
        result = self._joined(result, samples) if type(result) in (tuple, list) else result
        if not samples or not self._is_batch(result, samples) or not result.requires_grad:
            return
        if 0 in result.stride() or not module.training or _weights(module) < _LEAST_WEIGHTS:
            return
        scene, number = self._scene, model.number
        with scene.sampling.timed(result):
            self._compared[number] = scene.sampling.step
            row = self._common_row(result)
            before = self._rows.pop(number, None)
            if row is None:
                scene.tell(OutputsCompared, model=number, site=site, samples=samples)
                return
            self._rows[number] = row
            made_equal, zero = (layer[0](), layer[1]) if layer else (None, False)
            scene.emit(
                OutputsCompared(
                    model=number,
                    site=site,
                    samples=samples,
                    equal=True,
                    moved=before is not None and before != row and not _is_plain(result),
                    layer=_name(module, made_equal),
                    kind="" if made_equal is None else type(made_equal).__name__,
                    zero=zero,
                    steps=scene.sampling.step,
                )
            )

    def _joined(self, parts: Any, samples: int) -> Any:
        """Return several results beside each other, if each has a row for each sample and a gradient; else None."""
        if not 1 < len(parts) <= _MOST_PARTS or not samples:
            return None
        if not all(self._is_batch(part, samples) and part.requires_grad and part.is_cpu for part in parts):
            return None
        with self._scene.sampling.timed(parts[0]):
            rows = self._scene.torch.cat([part.detach().reshape(samples, -1) for part in parts], 1)
        return rows.requires_grad_() if rows.numel() <= _LARGEST else None

    def _readable(self, value: Any) -> bool:
        return (
            type(value) is self._tensor
            and value.dim() > 0
            and 0 < value.numel() <= _LARGEST
            and str(value.layout) == "torch.strided"
            and not value.is_complex()
            and not value.is_meta
            and not value.is_quantized
            and not self._wrapped(value)
        )

    def _is_batch(self, value: Any, samples: int | None = None) -> bool:
        """Return True if a result has one row of single or double precision for each sample."""
        torch, count = self._scene.torch, self._samples if samples is None else samples
        return self._readable(value) and value.dtype in (torch.float32, torch.float64) and value.shape[0] == count

    def _common_row(self, value: Any) -> list[float] | None:
        """Return the beginning of the common row; None if the rows differ by more than rounding."""
        torch = self._scene.torch
        rows = value.detach().reshape(value.shape[0], -1)
        gaps, sizes = (rows - rows[:1]).abs().amax(0), rows.abs().amax(0)
        allowed = _ROUNDINGS * torch.finfo(rows.dtype).eps * sizes.max()
        if not bool(((gaps <= allowed) & (gaps <= _COLUMN * sizes)).all()):
            return None
        row: list[float] = rows[0, :_BEGINNING].tolist()
        return row


def _is_plain(values: Any) -> bool:
    """Return True if all values are -1, 0 or 1, as those of saturated activations and of choices."""
    values = values.detach()
    return bool(((values == 0) | (values.abs() == 1)).all())


def _weights(module: Any) -> int:
    return sum(parameter.requires_grad and parameter.dim() > 1 for parameter in module.parameters())


def _name(module: Any, layer: Any) -> str:
    """Return the path of a layer in a model, such as "encoder.2"."""
    if layer is None:
        return ""
    for number, (path, inner) in enumerate(module.named_modules()):
        if inner is layer:
            return str(path)
        if number > _MOST_LAYERS:
            break
    return ""
