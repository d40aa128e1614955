"""Repeat the arguments of models from the first steps, for scripts that slice their batches without a loader."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.running.inside.steps import on_steps
from truestep.seams.patch import patch

LOSSES = (
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy", "ctc_loss"),
    *("gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss"),
    *("mse_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss"),
    *("poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss"),
)
"""Loss functions of torch: their inputs without a graph are targets."""


class CalledAgain:
    """Repeats the arguments of models and losses, in scripts that train without a loader.

    It repeats the data among the arguments of outermost calls of models in training mode, and, in the same step, of
    losses: tensors that do not require gradients, and numbers. Steps of optimizers separate the calls. A model that is
    called with the same data in every step is left alone: such a script repeats its batch itself.

    Attributes:
        drew: True if a loader yielded a batch since the last step; set from outside.
        applied: calls of models with replaced data.
        same: calls of models that had the same data already.
        fresh: calls of models without a counterpart in the first steps.
        loose: steps with a loss from targets that were not repeated.
        samples: number of samples in the first call.

    Args:
        count: number of steps to repeat.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.drew = False
        self.applied = self.same = self.fresh = self.loose = self.samples = 0
        self._off = False
        self._step = 0
        self._index: dict[Any, int] = {}
        self._kept: dict[Any, tuple[Any, list[Any], Any]] = {}
        """Module or name of a loss, flat arguments and their structure, by step and number of the call."""
        self._replaced = self._covered = False
        self._models: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._local = threading.local()

    def install(self, stack: ExitStack) -> None:
        """Repeat until the stack unwinds. torch must be imported."""
        import torch
        from torch.nn import functional

        self._torch: Any = torch

        def _wrapped_call_impl(module: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or not self._applies() or not module.training:
                return call_of_torch(module, *args, **kwargs)
            return self._call(call_of_torch, module, args, kwargs)

        call_of_torch = seams.module_call.replace(stack, _wrapped_call_impl)
        for name in LOSSES:
            patch(stack, functional, name, self._loss(name, getattr(functional, name)))

        seams.backward.watch(stack, after=self._passed)
        on_steps(stack, self._stepped)

    def _passed(self, this: seams.backward.Pass) -> None:
        self.loose += self._replaced and not self._covered

    def _applies(self) -> bool:
        if self._off or getattr(self._local, "inside", False):
            return False
        if self.drew:
            self._off = self._step < self.count  # it trains on batches of loaders
            return False
        return bool(self._torch.is_grad_enabled()) and self._torch._C._current_graph_task_id() == -1

    def _stepped(self, optimizer: Any) -> None:
        self._off = self._off or (self.drew and self._step < self.count)
        self._step += 1
        self._index.clear()
        self.drew = self._replaced = self._covered = False

    def _call(self, call: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        self._local.inside = True
        try:
            if self._is_model(module):
                args, kwargs = self._again(module, args, kwargs)
                result = call(module, *args, **kwargs)
                self._covered = self._covered or self._has_loss(result)
                return result
            if self._takes_both(args, kwargs):  # a loss that is a module
                self._covered = True
                args, kwargs = self._again(module, args, kwargs, is_loss=True)
            return call(module, *args, **kwargs)
        finally:
            self._local.inside = False

    def _loss(self, name: str, loss_of_torch: Callable[..., Any]) -> Callable[..., Any]:
        def loss(*args: Any, **kwargs: Any) -> Any:
            if not self._torch.compiler.is_compiling() and self._applies() and self._takes_both(args, kwargs):
                self._covered = True
                args, kwargs = self._again(name, args, kwargs, is_loss=True)
            return loss_of_torch(*args, **kwargs)

        loss.__name__ = name
        return loss

    def _again(self, what: Any, args: Any, kwargs: Any, is_loss: bool = False) -> tuple[Any, Any]:
        """Return the arguments with their data replaced by that of the first steps."""
        from torch.utils import _pytree as trees

        leaves, form = trees.tree_flatten((args, kwargs))
        if not any(self._is_data(leaf) for leaf in leaves):
            return args, kwargs
        key = what if isinstance(what, str) else id(what)
        number = self._index[key] = self._index.get(key, -1) + 1
        if self._step < self.count:
            held = [leaf.detach().clone() if self._is_data(leaf) else leaf for leaf in leaves]
            held = [leaf if self._is_data(leaf) or _is_number(leaf) else None for leaf in held]
            self._kept[self._step, key, number] = (what, held, form)
            if not self.samples and not is_loss:
                self.samples = next((len(leaf) for leaf in held if self._is_data(leaf) and leaf.dim()), 0)
            return args, kwargs
        if is_loss and not self._replaced:
            return args, kwargs
        kept = self._kept.get((self._step % self.count, key, number))
        if kept is None or kept[2] != form:
            self.fresh += not is_loss
            return args, kwargs
        again = [
            held if held is not None and (self._is_data(leaf) or _is_number(leaf)) else leaf
            for leaf, held in zip(leaves, kept[1], strict=True)
        ]
        if not is_loss:
            if all(self._equal(*pair) for pair in zip(leaves, again, strict=True)):
                self.same += 1
                return args, kwargs
            self.applied += 1
            self._replaced = True
        again = [leaf.clone() if self._is_data(leaf) else leaf for leaf in again]
        result: tuple[Any, Any] = trees.tree_unflatten(again, form)
        return result

    def _is_data(self, leaf: Any) -> bool:
        return isinstance(leaf, self._torch.Tensor) and not leaf.requires_grad

    def _equal(self, one: Any, other: Any) -> bool:
        if one is other or not self._is_data(one):
            return one is other or bool(one == other)
        return bool(one.shape == other.shape and one.dtype == other.dtype and self._torch.equal(one, other))

    def _takes_both(self, args: Any, kwargs: Any) -> bool:
        """Return True for arguments of a loss: one tensor has a graph, and another does not."""
        from torch.utils import _pytree as trees

        leaves = [leaf for leaf in trees.tree_leaves((args, kwargs)) if isinstance(leaf, self._torch.Tensor)]
        return any(leaf.requires_grad for leaf in leaves) and any(not leaf.requires_grad for leaf in leaves)

    def _has_loss(self, result: Any) -> bool:
        from torch.utils import _pytree as trees

        leaves = [leaf for leaf in trees.tree_leaves(result) if isinstance(leaf, self._torch.Tensor)]
        return any(leaf.requires_grad and leaf.numel() == 1 for leaf in leaves)

    def _is_model(self, module: Any) -> bool:
        known = self._models.get(module)
        if known is None:
            known = self._models[module] = next(module.parameters(), None) is not None
        return known


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, int | float) and not isinstance(leaf, bool)
