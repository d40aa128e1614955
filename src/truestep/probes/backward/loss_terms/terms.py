"""Terms of a loss without a gradient, although they were computed from tensors that have one.

The tape shows how many operands of the sum have no gradient. The source around the backward pass has the expressions
of the terms, and the frame has the values of their names. A term is reported only if all three agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

from truestep.events import Site, TermsRead
from truestep.probes.backward.loss_terms.discrete_terms import discrete_terms
from truestep.probes.backward.loss_terms.loss_source import Term, terms_of
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene

_SUMS = ("AddBackward0", "SubBackward0", "RsubBackward0")
_SCALINGS = ("DivBackward0", "MulBackward0", "NegBackward0")
_PLAIN = (int, float, FunctionType, BuiltinFunctionType, ModuleType)
_MOST_TERMS = 64
_MOST_NODES = 20_000


class Terms:
    """Emits `TermsRead`: a term without a gradient, and later on also that all terms have one."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._told: set[Site] = set()
        """Lines of backward passes with such a term."""

    def look(self, node: Any, frame: FrameType | None, site: Site | None) -> None:
        """Look at the sum that a backward pass starts from.

        Args:
            node: operation that made the loss.
            frame: the user's frame that called backward; None if a library did.
            site: the line of the call.
        """
        if site is None or frame is None:
            return
        found, values = None, {}
        if _without_source(node):
            values = frame.f_globals | variables(frame)
            terms = (*terms_of(site), *discrete_terms(site))
            found = next((term for term in terms if self._is_cut(term, values, node)), None)
        if found is not None:
            self._told.add(site)
            cut = next((cut for cut in found.cuts if any(map(self._has_gradient, map(values.get, cut.names)))), None)
            place, text = (found.place, found.cut) if cut is None else (cut.place, cut.text)
            self._scene.tell(TermsRead, site=site, place=place, cut=text, name=found.name)
        elif site in self._told:
            self._scene.tell(TermsRead, site=site)

    def _is_cut(self, term: Term, values: dict[str, Any], node: Any) -> bool:
        """Return True if the values of its names show that a term has no gradient, and was computed from some."""
        tensor = self._scene.torch.Tensor
        if term.returned:
            return True  # the source and the tape agree
        if term.name:
            value = values.get(term.name)
            if not isinstance(value, float) and (not isinstance(value, tensor) or value.requires_grad):
                return False
        if any(isinstance(value := values.get(name), tensor) and value.requires_grad for name in term.factors):
            return False
        if any(self._has_gradient(values.get(name)) for name in term.others):
            return False
        if term.cuts and not term.name and not all(self._is_plain(values.get(name)) for name in term.others):
            return False
        sources = [value for name in term.names if isinstance(value := values.get(name), tensor)]
        module = self._scene.torch.nn.Module
        called = () if term.cut == "torch.no_grad()" else term.names  # a block is often meant: targets, references
        modules = [values.get(name) for name in {*term.modules, *called}]
        leaves = _leaves([value for value in sources if value.requires_grad])
        held = (one.parameters() for one in modules if isinstance(one, module))
        leaves |= {id(parameter) for parameters in held for parameter in parameters if parameter.requires_grad}
        reached = leaves_below([node])
        shared = self._optimizers(leaves) & self._optimizers(reached) if term.cut == ".detach()" else ()
        return bool(leaves) and (bool(shared) or not leaves.isdisjoint(reached))

    def _optimizers(self, leaves: set[int]) -> set[int]:
        """Return the numbers of the optimizers that hold some of these leaves."""
        ledger = self._scene.ledger
        held = [one for leaf in leaves if (one := ledger.by_id.get(leaf)) is not None]
        return {one.panel.number for one in held if one.panel is not None and one.panel is not ledger.free}

    def _is_plain(self, value: Any) -> bool:
        """Return True for a value that holds no other tensors: a collection can hold some with a gradient."""
        return isinstance(value, (self._scene.torch.Tensor, self._scene.torch.nn.Module, *_PLAIN))

    def _has_gradient(self, value: Any) -> bool:
        """Return True for a tensor with a gradient, and for a module, which may have trained parameters."""
        if isinstance(value, self._scene.torch.Tensor):
            return bool(value.requires_grad)
        return isinstance(value, self._scene.torch.nn.Module) and any(p.requires_grad for p in value.parameters())


def _without_source(node: Any) -> bool:
    """Return True if an operand of the sum before a backward pass has no gradient."""
    queue = [node]
    for _ in range(_MOST_TERMS):
        if not queue:
            return False
        current = queue.pop()
        name = "" if current is None else current.name()
        if name in _SUMS and any(following is None for following, _ in current.next_functions):
            return True
        if name in _SUMS or name in _SCALINGS:
            queue += [following for following, _ in current.next_functions if following is not None]
    return False


def _leaves(tensors: Iterable[Any]) -> set[int]:
    """Return the ids of the leaves that tensors were computed from."""
    tensors = list(tensors)
    made = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    return {id(tensor) for tensor in tensors if tensor.grad_fn is None} | leaves_below(made)


def leaves_below(nodes: list[Any]) -> set[int]:
    """Return the ids of the leaves that operations were computed from."""
    found: set[int] = set()
    seen = set(nodes)
    queue = list(seen)
    while queue and len(seen) < _MOST_NODES:
        node = queue.pop()
        if node.name() == "torch::autograd::AccumulateGrad":
            found.add(id(node.variable))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)
    return found
