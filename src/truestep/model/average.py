"""Averages of a model's weights over the course of training, held in a copy of the model."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from operator import is_
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.parameter import is_lazy

from truestep.errors import BadPart
from truestep.model.freeze import is_held
from truestep.seams.divided import is_divided, local
from truestep.seams.wrappers import wrapped_model

Place = tuple[dict[str, Any], dict[str, Any], str]
"""Place of a tensor: a dict of a module, the same dict of its copy, and the name in both."""

_STATISTICS = ("running_mean", "running_var")


class Average:
    """The average of a model's weights, in a separate model; base class of `EMA` and `SWA`.

    The trained weights are never exchanged for the average, so nothing can be saved or trained in the wrong state.
    Buffers are copied; the running statistics of norm layers are averaged if `statistics` is True.

    Args:
        model: the trained model, on its device. It is copied once.
        statistics: True to average the running mean and variance of norm layers like the weights.

    Attributes:
        model: the average, a copy of the model in eval mode without gradients; its `state_dict` has the model's keys.
        source: the trained model.
        updates: number of updates of the average.
    """

    def __init__(self, model: nn.Module, *, statistics: bool) -> None:
        self.source: nn.Module = wrapped_model(model)
        lazy = [name for name, parameter in self.source.named_parameters() if is_lazy(parameter)]
        if lazy:
            raise BadPart(
                f"{lazy[0]} has no shape yet",
                expected="expected initialized parameters, got those of a lazy module",
                remedy="call the model on one batch before its average is made",
            )
        try:
            self.model: nn.Module = copy.deepcopy(self.source)
        except Exception as error:
            raise BadPart(
                f"{type(self.source).__name__} cannot be copied: {error}",
                expected="expected a model that copy.deepcopy() can copy",
                remedy="make its average before the first forward pass, and store no results of forward passes in it",
            ) from error
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
            parameter.grad = None
        self.model.eval()
        self.updates = 0
        self._weights: list[Place] = []
        self._copied: list[Place] = []
        self._holders = [module._parameters for module in self.source.modules()]
        self._met: list[torch.Tensor | None] = []
        self._place(statistics)

    def _place(self, statistics: bool) -> None:
        """Assign every tensor to the averaged or the copied ones; tied tensors once."""
        seen = set[int]()
        for own, other in zip(self.source.modules(), self.model.modules(), strict=True):
            for name, tensor in own._parameters.items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    kept = tensor.is_floating_point() or tensor.is_complex()
                    (self._weights if kept else self._copied).append((own._parameters, other._parameters, name))
            for name in own._buffers:
                averaged = statistics and isinstance(own, _NormBase) and name in _STATISTICS
                present = averaged and own._buffers[name] is not None
                (self._weights if present else self._copied).append((own._buffers, other._buffers, name))

    def update(self) -> None:
        """Update the average with the current weights; call it after `optimizer.step()`.

        Raises:
            BadPart: the parameters of the model are not those that the average was made for.
        """
        self._take(self._share())
        self.updates += 1

    def restart(self) -> None:
        """Set the average to the current weights, and reset `updates` to 0."""
        self._take(1.0)
        self.updates = 0

    def _share(self) -> float:
        """Return the weight of the current weights in the new average, in (0, 1]."""
        raise NotImplementedError

    @torch.no_grad()
    def _take(self, share: float) -> None:
        new = [source[name] for source, _, name in (*self._weights, *self._copied)]
        if len(new) != len(self._met) or not all(map(is_, new, self._met)):
            self._meet(new)
        count = len(self._weights)
        averages = [target[name] for _, target, name in self._weights]
        if any(map(is_divided, averages[:1])):  # each rank averages its parts
            averages, new = list(map(local, averages)), list(map(local, new))
        if averages and share == 1.0:
            torch._foreach_copy_(averages, new[:count])
        elif averages:
            torch._foreach_lerp_(averages, new[:count], share)
        copies = [(target[name], tensor) for (_, target, name), tensor in zip(self._copied, new[count:], strict=True)]
        present = [pair for pair in copies if pair[1] is not None]
        if present:
            torch._foreach_copy_([old for old, _ in present], [tensor for _, tensor in present])

    def _meet(self, new: list[torch.Tensor | None]) -> None:
        """Handle tensors that replaced others: a weight must keep its shape, a buffer may have any."""
        count = len(self._weights)
        for (_, target, name), tensor in zip(self._weights, new[:count], strict=True):
            if tensor is None or tensor.shape != target[name].shape:
                self.check()
        for (_, target, name), tensor in zip(self._copied, new[count:], strict=True):
            old = target[name]
            if tensor is None or old is None or (tensor.shape, tensor.dtype) != (old.shape, old.dtype):
                target[name] = None if tensor is None else tensor.detach().clone()
        self._met = new

    def check(self) -> None:
        """Compare the modules and parameters of the model with those that the average was made for.

        Raises:
            BadPart: they differ.
        """
        had = [(name, tuple(tensor.shape)) for name, tensor in self.model.named_parameters()]
        has = [(name, tuple(tensor.shape)) for name, tensor in self.source.named_parameters()]
        holders = {id(holder) for holder in self._holders}
        known = all(not module._parameters or id(module._parameters) in holders for module in self.source.modules())
        if had != has or not known:
            changed = sorted({name for name, _ in set(had) ^ set(has)}) or ["a module"]
            raise BadPart(
                f"the model has changed since its average was made: {', '.join(changed[:3])}",
                expected=f"expected {len(had)} parameters of the same names and shapes",
                remedy="make the average after the model has all its layers",
            )

    @torch.no_grad()
    def update_bn(self, batches: Iterable[Any]) -> None:
        """Compute the statistics of the average's BatchNorm layers again, in one pass over training data.

        An average of weights has other activations than the models that it is made of. The model is called in train
        mode, as by `torch.optim.swa_utils.update_bn`; the modes of all modules are restored after that. Layers that
        `freeze` keeps in eval mode keep their statistics. Without BatchNorm nothing is read.

        Args:
            batches: inputs on the model's device: tensors, or tuples and lists with a tensor first, such as
                `run.batches(loader)`. For others, `(batch["pixels"] for batch in run.batches(loader))`.

        Source: Izmailov et al. (arXiv:1803.05407), section 3.2.
        """
        norms = [
            module
            for module in self.model.modules()
            if isinstance(module, _BatchNorm) and module.running_mean is not None and not is_held(module)
        ]
        if not norms:
            return
        momenta = [norm.momentum for norm in norms]
        modes = [(module, module.training) for module in self.model.modules()]
        try:
            self.model.train()
            for norm in norms:
                norm.reset_running_stats()
                norm.momentum = None  # cumulative average over all batches
            for batch in batches:
                self.model(batch[0] if isinstance(batch, tuple | list) else batch)
        finally:
            for norm, momentum in zip(norms, momenta, strict=True):
                norm.momentum = momentum
            for module, training in modes:
                module.training = training

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the trained parameters that are averaged."""
        return self.source.parameters()

    def state_dict(self) -> dict[str, Any]:
        """Return the average under "model", with the plain keys of the model, and the number of updates."""
        return {"model": self.model.state_dict(), "updates": self.updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load an average from its state."""
        self.model.load_state_dict(state["model"])
        self.updates = state["updates"]
