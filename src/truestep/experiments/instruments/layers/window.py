"""One inspected step: the models that are called in it, the losses of its backward passes, and its memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from types import FrameType
from typing import Any

import torch

from truestep.debugging._visible import joined, kind
from truestep.debugging.inspecting import inspect
from truestep.debugging.inspection import Inspection
from truestep.events import Site
from truestep.experiments.instruments.layers.loss_tree import LossTree
from truestep.experiments.instruments.layers.model_facts import model_facts
from truestep.experiments.instruments.layers.module_calls import ModuleCalls
from truestep.experiments.instruments.layers.reach import cover, leaves_of, nodes_below, saved_bytes
from truestep.experiments.instruments.model_names import model_of, named, unused
from truestep.experiments.instruments.needs.models import Held, held, total
from truestep.probes.backward.cuts import Chain, cut_between, switch
from truestep.probes.backward.loss_terms.loss_source import terms_of
from truestep.probes.context.local_variables import variables
from truestep.probes.context.sites import Sites
from truestep.seams.backward import Pass
from truestep.seams.wrappers import is_compiled

_MOST_PASSES = 64
"""Backward passes of a step that are read; an accumulation of more is the same again."""
_OPAQUE = ("CompiledFunction", "torch::jit")


class Window:
    """The observations of one step.

    Attributes:
        number: number of the step, from 1.
        ended: True once the first optimizer has stepped.
        left: True if the window is not needed any more.
        closed: True once its hooks are removed.
        trouble: errors of the inspection itself.
    """

    def __init__(self, number: int, sites: Sites, calls: ModuleCalls) -> None:
        self.number = number
        self.ended = self.left = self.closed = False
        self.trouble: list[str] = []
        self._sites, self._calls = sites, calls
        self._stack = ExitStack()
        self._models: dict[str, tuple[Any, Any, Inspection]] = {}
        """Model without wrappers, module with the hooks, and inspection, by name."""
        self._results: dict[Any, str] = {}
        """Loss modules by the operation that made their result."""
        self._passes: list[dict[str, Any]] = []
        self._read = 0
        self._memory: dict[str, Any] = {}
        self._optimizers: list[dict[str, Any]] = []
        self._ignored: set[int] = set()
        self._loose: dict[int, Any] = {}
        """Leaf tensors of the losses outside of the models, by id."""

    # --- models ---

    def met(self, module: Any, frame: FrameType) -> None:
        """Inspect the model that a called module belongs to, from now on."""
        if id(module) in self._ignored or next(module.parameters(), None) is None:
            return
        if any(map(torch._C._functorch.is_functorch_wrapped_tensor, module.parameters())):
            return  # `functional_call` with other values in place of the parameters
        self._ignored.add(id(module))
        model, name = model_of(module, frame, self._sites)
        if any(model is known for known, _, _ in self._models.values()):
            return
        hooked = module if is_compiled(module) or is_compiled(getattr(module, "module", None)) else model
        seen = self._stack.enter_context(inspect(hooked, updates=False))
        self._models[unused(name, self._models)] = (model, hooked, seen)

    def made(self, module: Any, result: Any, frame: FrameType) -> None:
        """Remember the result of a loss module, which has no parameters."""
        if isinstance(result, torch.Tensor) and result.grad_fn is not None and result.numel() == 1:
            if next(module.parameters(), None) is None:
                variable = named(module, frame)
                self._results[result.grad_fn] = f"{variable} ({kind(module)})" if variable else kind(module)

    # --- backward passes and steps ---

    def passing(self, this: Pass, frame: FrameType | None) -> None:
        """Read the losses of a backward pass before the engine runs."""
        self._read += 1
        if self._read > _MOST_PASSES:
            return
        nodes = nodes_below(root.grad_fn for root in this.roots)
        owned = held([model for model, _, _ in self._models.values()], ())
        for root in this.roots:
            tree = LossTree(self._names(frame), self._results, lambda leaves: self._reached(leaves, frame))
            found = tree.read(root)
            leaves = leaves_of(nodes) if root.grad_fn is not None else {id(root): root}
            site = self._sites.at(frame)
            found |= {
                "site": _place(site),
                "without_gradient": self._terms_without_gradient(site, frame),
                "cuts": self._cuts(set(leaves)),
                "hidden": sorted({"torch.compile" for node in nodes if node.name().startswith(_OPAQUE)}),
                "saved": saved_bytes(nodes, (*owned.parameters, *owned.buffers)),
            }
            self._passes.append(found)
        self._results.clear()

    def stepped(self, optimizer: Any, optimizers: Any, frame: FrameType | None) -> None:
        """Record the step of an optimizer, or of the script itself for None, and measure the memory after it.

        Args:
            optimizer: the optimizer.
            optimizers: all optimizers that have stepped.
            frame: the frame of the call.
        """
        entry = {"kind": type(optimizer).__name__, "site": _place(self._sites.at(frame))}
        if optimizer is not None and entry not in self._optimizers:
            self._optimizers.append(entry)
        self._measure(optimizers)
        self.ended = True

    def _measure(self, optimizers: Any) -> None:
        now = held([model for model, _, _ in self._models.values()], optimizers)
        known = {id(tensor) for tensor in now.parameters}
        loose = [tensor for key, tensor in self._loose.items() if key not in known]
        now = Held([*now.parameters, *loose], now.buffers, now.state)
        self._memory = {
            "device": now.device,
            "parameters": total(now.parameters),
            "buffers": total(now.buffers),
            "gradients": total(now.gradients),
            "optimizer": total(now.state),
        }

    # --- results ---

    def close(self) -> None:
        """Remove the hooks."""
        self.closed = True
        self._stack.close()

    def facts(self) -> dict[str, Any]:
        """Return everything as values for JSON."""
        apart = [
            (name, model, hooked, seen)
            for name, (model, hooked, seen) in self._models.items()
            if not any(model is part for other, _, _ in self._models.values() if other is not model
                       for part in other.modules())
        ]  # fmt: skip
        saved = [one["saved"] for one in self._passes]
        if not self._memory:
            self._measure(())
        return {
            "step": self.number,
            "ended": self.ended,
            "optimizers": self._optimizers,
            "models": [model_facts(name, hooked, seen) for name, _, hooked, seen in apart],
            "losses": self._passes,
            "passes": self._read,
            "memory": self._memory | {"saved": None if None in saved else max(saved, default=0)},
            "trouble": sorted(set(self.trouble)),
        }

    # --- the tape ---

    def _names(self, frame: FrameType | None) -> dict[Any, tuple[str, Any]]:
        """Return the variables of the script by the operation that made them: names and values."""
        found: dict[Any, tuple[str, Any]] = {}
        for one in self._sites.users(frame):
            for name, value in (variables(one) | {}).items():
                for shown, tensor in _tensors(name, value):
                    if tensor.grad_fn is not None:
                        found.setdefault(tensor.grad_fn, (shown, tensor))
        return found

    def _reached(self, leaves: dict[int, Any], frame: FrameType | None) -> dict[str, Any]:
        """Return the parameters among leaf tensors by model, and other leaf tensors."""
        ids = set(leaves)
        found: list[dict[str, Any]] = []
        owned: set[int] = set()
        for name, (model, _, _) in self._models.items():
            trained = {id(one): one.numel() for one in model.parameters() if one.requires_grad}
            owned |= trained.keys()
            inside = ids & trained.keys()
            if inside:
                found.append(
                    {
                        "model": name,
                        "parts": [joined(name, part) for part in cover(model, inside)],
                        "parameters": len(inside),
                        "of": len(trained),
                        "values": sum(trained[one] for one in inside),
                    }
                )
        others = [leaf for key, leaf in leaves.items() if key not in owned]
        self._loose |= {id(leaf): leaf for leaf in others}
        return {"models": found, "tensors": self._tensor_names(others, frame)}

    def _tensor_names(self, tensors: list[Any], frame: FrameType | None) -> list[dict[str, Any]]:
        """Return names and shapes of tensors outside of the models, as the script calls them."""
        known: dict[int, str] = {}
        for one in self._sites.users(frame) if tensors else ():
            for name, value in (one.f_globals | variables(one)).items():
                if isinstance(value, torch.nn.Module):
                    for inner, parameter in value.named_parameters():
                        known.setdefault(id(parameter), f"{name}.{inner}")
                for shown, tensor in _tensors(name, value):
                    known.setdefault(id(tensor), shown)
        return [{"name": known.get(id(tensor), ""), "shape": list(tensor.shape)} for tensor in tensors]

    def _terms_without_gradient(self, site: Site | None, frame: FrameType | None) -> list[dict[str, Any]]:
        """Return the terms of the sum that have no gradient, with the expression that cuts it."""
        if site is None or frame is None:
            return []
        values = frame.f_globals | variables(frame)
        found = []
        for term in terms_of(site):
            value = values.get(term.name)
            plain = isinstance(value, float) or (isinstance(value, torch.Tensor) and not value.requires_grad)
            if (plain if term.name else bool(term.cut)) and not term.returned:
                found.append({"name": term.name, "cut": term.cut, "site": _place(term.place)})
        return found

    def _cuts(self, reached: set[int]) -> list[dict[str, Any]]:
        """Return the parameters of layers that were called for this loss, and are not reached by it."""
        forwarded, order = self._calls.forwarded, self._calls.order
        found: dict[Any, set[int]] = {}
        for key, places in self._calls.without_grad.items():
            if key not in forwarded and key not in reached:
                found.setdefault(switch(next(iter(places))) or (None, "no_grad()"), set()).add(key)
        ends = {place for key in forwarded if key in reached for place in forwarded[key]}
        later = [*sorted(ends, key=order.__getitem__), self._sites.chain()]
        known: dict[Chain, Any] = {}
        for key in forwarded.keys() - reached:
            begins = next(iter(forwarded[key]))
            if begins not in known:
                after = (end for end in later if order.get(end, len(order)) > order[begins])
                known[begins] = next((cut for end in after if (cut := cut_between(begins, end))), (None, ""))
            found.setdefault(known[begins], set()).add(key)
        cuts = []
        for (site, text), ids in found.items():
            parts = [
                joined(name, part)
                for name, (model, _, _) in self._models.items()
                for part in cover(model, ids)
            ]  # fmt: skip
            if parts:
                cuts.append({"parts": parts, "by": text, "site": _place(site)})
        return cuts


def _tensors(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors in a variable, with their names: `loss`, `losses["mse"]`, `losses[0]`."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif type(value) is dict and len(value) <= _MOST_PASSES:
        yield from (
            (f"{name}[{key!r}]".replace("'", '"'), one) for key, one in value.items() if isinstance(one, torch.Tensor)
        )
    elif type(value) in (list, tuple) and len(value) <= _MOST_PASSES:
        yield from ((f"{name}[{index}]", one) for index, one in enumerate(value) if isinstance(one, torch.Tensor))


def _place(site: Site | None) -> list[Any] | None:
    return None if site is None else [site.path, site.line]
