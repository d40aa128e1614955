"""Evaluation and prediction: modes set and restored, means over samples, predictions in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import zip_longest
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from truestep.errors import BadLoader
from truestep.loop.loading.given import GivenLoader
from truestep.loop.loading.loader import Loader, check_loader
from truestep.loop.log.mean import Mean
from truestep.loop.optim.precision import Precision
from truestep.loop.process.device import to_device
from truestep.loop.ranks.sampler import check_sampler
from truestep.loop.ranks.strategy import Strategy
from truestep.loop.run.stepper import Stepper
from truestep.model.boundary import WithPostMortem
from truestep.model.modes import evaluating

_NO_PART = object()


class Evaluation:
    """Evaluates the models of a run.

    Args:
        device: of the run.
        precision: of the forward passes of predictions.
        stepper: has no open window when an evaluation begins outside of a loop.
        means: of the run, by name; they are part of its checkpoints.
        strategy: the ranks, each of which reads a part of the samples.
    """

    def __init__(
        self,
        device: torch.device,
        precision: Precision,
        stepper: Stepper,
        means: dict[str, Mean],
        strategy: Strategy,
    ) -> None:
        self._device, self._precision, self._stepper, self._means = device, precision, stepper, means
        self._strategy = strategy

    def batches(self, loader: Loader | GivenLoader | DataLoader[Any]) -> Iterator[Any]:
        """Yield the batches of a loader on the device of the run; see `Run.batches`."""
        given = loader.loader if isinstance(loader, GivenLoader) else loader
        if isinstance(given, DataLoader) and self._strategy.world_size > 1:
            check_sampler(given)
        batches = iter(loader) if isinstance(given, DataLoader) else check_loader(loader).own_batches()
        for batch in self._strategy.even(batches):
            yield to_device(batch, self._device, non_blocking=True)

    def evaluate(self, *models: nn.Module, inference_mode: bool) -> AbstractContextManager[None]:
        """Return a context with models in eval mode and without gradients; see `Run.evaluate`."""
        self._stepper.no_open_window("run.evaluate()")
        self._strategy.share_buffers(models)
        return WithPostMortem(evaluating(*models, inference_mode=inference_mode and not self._strategy.shards))

    def mean(self, name: str) -> Mean:
        """Return the mean with a name, empty; see `Run.mean`."""
        if name in self._means:
            self._means[name].reset()
        else:
            strategy = self._strategy
            several = strategy.world_size > 1
            self._means[name] = Mean(
                self._device, strategy.sum if several else None, (lambda: strategy.weight == 0) if several else None
            )
        return self._means[name]

    def predict(
        self,
        model: nn.Module,
        loader: Loader | GivenLoader | DataLoader[Any],
        forward: Callable[[Any], Any] | None,
        *,
        join: bool,
    ) -> Any:
        """Return the outputs of a model for every sample of a loader; see `Run.predict`."""
        _check_order(GivenLoader(loader, "DataLoader") if isinstance(loader, DataLoader) else loader)
        outputs = []
        with self.evaluate(model, inference_mode=False):
            for batch in self.batches(loader):
                with self._precision.autocast():
                    output = forward(batch) if forward is not None else model(_first(batch))
                outputs.append(to_device(output, torch.device("cpu")))
        if self._strategy.world_size > 1:  # each rank has a part of each batch
            every = self._strategy.gathered(outputs)
            outputs = [part for batch in zip_longest(*every, fillvalue=_NO_PART) for part in batch]
            outputs = [part for part in outputs if part is not _NO_PART]
        return joined(outputs) if join else outputs


def _check_order(loader: Loader | GivenLoader) -> None:
    if loader.shuffle or loader.drop_last:
        what, flag = ("in another order", "shuffle") if loader.shuffle else ("without the last ones", "drop_last")
        raise BadLoader(
            f"loader {loader.name!r} yields its samples {what}, so predictions would not match the data set",
            expected=f"expected a loader with {flag}=False",
            remedy="make a separate loader for predictions: run.loader(dataset, batch_size=...)",
        )


def _first(batch: Any) -> Any:
    if isinstance(batch, tuple | list) and batch:
        return batch[0]
    if isinstance(batch, torch.Tensor):
        return batch
    raise BadLoader(
        f"cannot choose the input of the model from a batch of type {type(batch).__name__}",
        expected="expected a tensor, or a tuple with the input of the model as its first field",
        remedy='pass forward=lambda batch: model(batch["x"]) to run.predict()',
    )


def joined(outputs: list[Any]) -> Any:
    """Return the outputs of all batches, or the values of all ranks, as one along the first dimension."""
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        if first.dim() == 0 or len({(output.shape[1:], output.dtype) for output in outputs}) > 1:
            shapes = sorted({str(tuple(output.shape)) for output in outputs})
            raise BadLoader(
                "the outputs of the batches cannot be joined",
                expected=f"expected tensors that differ in the first dimension only, got {', '.join(shapes[:4])}",
                remedy="pass join=False for a list with one output per batch",
            )
        return torch.cat(outputs)
    if isinstance(first, Mapping):
        return {key: joined([output[key] for output in outputs]) for key in first}
    if isinstance(first, tuple | list):
        parts = [joined(list(column)) for column in zip(*outputs, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if first is None:
        return None
    raise BadLoader(
        f"the model returns {type(first).__name__}, which cannot be joined",
        expected="expected tensors, or tuples, lists and mappings of them",
        remedy="pass forward=, a function that returns the tensor to keep, or join=False",
    )
