"""Evaluation and inference with a run: both switches set and put back, means over samples, predictions in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
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
from truestep.loop.run.loops import Loops
from truestep.loop.run.modes import evaluating
from truestep.loop.run.registry import Parts
from truestep.model.boundary import Told


class Evaluation:
    """The lines of an evaluation."""

    device: torch.device
    precision: Precision
    _parts: Parts
    _loops: Loops

    def batches(self, loader: Loader | GivenLoader | DataLoader[Any]) -> Iterator[Any]:
        """Give the batches of a loader on the run's device, in the same order and with the same samples every time."""
        own = isinstance(loader, DataLoader | GivenLoader)
        batches = iter(loader) if own else check_loader(loader).epoch(0)
        for batch in batches:
            yield to_device(batch, self.device, non_blocking=True)

    def evaluate(self, *models: nn.Module, inference_mode: bool = False) -> AbstractContextManager[None]:
        """Return a context with models in eval mode and no gradients; both are restored, for every submodule.

        Args:
            *models: put in eval mode.
            inference_mode: `torch.inference_mode` instead of `torch.no_grad`; what is made in it is never trained on.

        Raises:
            OpenWindow: gradients of a loop that was left wait for an update.
        """
        self._loops.no_open_window("run.evaluate()")
        return Told(evaluating(*models, inference_mode=inference_mode))

    def mean(self, name: str) -> Mean:
        """Return the mean of a name, empty: a new one, or the one that there is, reset.

        It joins the checkpoints: one that is filled in a training loop goes on in a resumed run.

        Args:
            name: as it will be logged, for example "val_loss".

        Example:
            >>> from truestep import Run
            >>> run = Run(max_steps=1, device="cpu", watch=False)
            >>> loader = run.loader([1.0, 2.0, 6.0], batch_size=2)
            >>> size = run.mean("size")
            >>> for x in run.batches(loader):
            ...     size.update(x.mean(), len(x))
            >>> float(size)
            3.0
        """
        means = self._parts.means
        if name in means:
            means[name].reset()
        else:
            means[name] = Mean(self.device)
        return means[name]

    def predict(
        self,
        model: nn.Module,
        loader: Loader | GivenLoader | DataLoader[Any],
        forward: Callable[[Any], Any] | None = None,
        *,
        join: bool = True,
    ) -> Any:
        """Return what a model gives for every sample of a loader, in the order of the data set, on the cpu.

        The model is in eval mode, without gradients, in the run's precision; the modes are put back.

        Args:
            model: called with the first field of each batch, or with the batch where it is a tensor.
            loader: neither shuffled nor with `drop_last`.
            forward: what is called with each batch instead, for other arguments or a part of the output.
            join: return one tensor of shape (samples, ...); False returns a list with the output of each batch.
                Tuples, lists and mappings of tensors are joined part by part.

        Raises:
            BadLoader: its order is not that of the data set, or outputs of batches cannot be joined.

        Example:
            >>> from truestep import Run
            >>> run = Run(device="cpu", watch=False)
            >>> model = run.model(nn.Flatten())
            >>> run.predict(model, run.loader(torch.arange(10.0).reshape(5, 2), batch_size=2)).shape
            torch.Size([5, 2])
        """
        _check_order(GivenLoader(loader, "DataLoader") if isinstance(loader, DataLoader) else loader)
        outputs = []
        with self.evaluate(model):
            for batch in self.batches(loader):
                with self.precision.autocast():
                    output = forward(batch) if forward is not None else model(_first(batch))
                outputs.append(to_device(output, torch.device("cpu")))
        return _joined(outputs) if join else outputs


def _check_order(loader: Loader | GivenLoader) -> None:
    if loader.shuffle or loader.drop_last:
        what, flag = ("in another order", "shuffle") if loader.shuffle else ("without the last ones", "drop_last")
        raise BadLoader(
            f"loader {loader.name!r} gives its samples {what}, so predictions would not fit the data set",
            expected=f"a loader with {flag}=False",
            remedy="make a loader of its own for predictions: run.loader(dataset, batch_size=...)",
        )


def _first(batch: Any) -> Any:
    if isinstance(batch, tuple | list) and batch:
        return batch[0]
    if isinstance(batch, torch.Tensor):
        return batch
    raise BadLoader(
        f"batches are {type(batch).__name__}, and what of them the model takes is not known",
        expected="a tensor, or a tuple whose first field goes into the model",
        remedy='pass forward=lambda batch: model(batch["x"]) to run.predict()',
    )


def _joined(outputs: list[Any]) -> Any:
    """Return the outputs of all batches as one, along the first dimension."""
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        if first.dim() == 0 or len({(output.shape[1:], output.dtype) for output in outputs}) > 1:
            shapes = sorted({str(tuple(output.shape)) for output in outputs})
            raise BadLoader(
                "the outputs of batches cannot be joined",
                expected=f"tensors that differ in their first dimension only, got shapes {', '.join(shapes[:4])}",
                remedy="pass join=False for a list with one output per batch",
            )
        return torch.cat(outputs)
    if isinstance(first, Mapping):
        return {key: _joined([output[key] for output in outputs]) for key in first}
    if isinstance(first, tuple | list):
        parts = [_joined(list(column)) for column in zip(*outputs, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if first is None:
        return None
    raise BadLoader(
        f"the model gives {type(first).__name__}, which cannot be joined",
        expected="tensors, or tuples, lists and mappings of them",
        remedy="pass forward=, which returns the tensor that is wanted, or join=False",
    )
