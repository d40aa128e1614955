"""Terms of a loss without a gradient, although they were computed from tensors that have one.

The tape shows how many operands of the sum have no gradient. The source around the backward pass has the expressions
of the terms, and the frame has the values of their names. A term is reported only if all three agree.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dis import Instruction, get_instructions
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from truestep import source
from truestep.events import Site, TermsRead
from truestep.probes.backward.loss_terms.derivatives import NAME as GRAD
from truestep.probes.backward.loss_terms.derivatives import Derivatives, outputs_of
from truestep.probes.backward.loss_terms.discrete_terms import discrete_terms
from truestep.probes.backward.loss_terms.loss_source import Cut, Term, loss_at, terms_of
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.seams.code.functions import code_of

_SUMS = ("AddBackward0", "SubBackward0", "RsubBackward0")
_SCALINGS = ("DivBackward0", "MulBackward0", "NegBackward0")
_MODULES = ("torch", "numpy", "math", "builtins")
"""Modules without tensors."""
_DEEPEST = 4
"""Functions that are read by each other."""
_MOST_TERMS = 64
_MOST_NODES = 20_000


class Terms:
    """Emits `TermsRead`: a term without a gradient, and later on also that all terms have one."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.derivatives = Derivatives(scene)
        self._told: set[Site] = set()
        """Lines of backward passes with such a term."""
        self._seen: dict[Site, set[int | str]] = {}
        """Line to the leaves, and the names of terms, that were on the tape of a backward pass."""
        self._cut: dict[Site, set[int | str]] = {}
        """Line to those of a term that were not, while the term had no gradient."""

    def look(self, node: Any, frame: FrameType | None, site: Site | None) -> None:
        """Look at the sum that a backward pass starts from.

        Args:
            node: operation that made the loss.
            frame: the user's frame that called backward; None if a library did.
            site: the line of the call.
        """
        if self.derivatives.look(node, site) or site is None or frame is None:
            return
        terms = (*terms_of(site), *discrete_terms(site))
        if not terms:
            return
        values = frame.f_globals | variables(frame)
        found = None
        if _without_source(node):
            found = next((term for term in terms if self._is_cut(term, values, node)), None)
            found = found or next(self._derived(site, terms, values, node), None)
        if self._takes_turns(site, terms, found, values, node):
            found = None
        if found is not None:
            self._told.add(site)
            cut = next((cut for cut in found.cuts if any(map(self._has_gradient, map(values.get, cut.names)))), None)
            place, text = (found.place, found.cut) if cut is None else (cut.place, cut.text)
            self._scene.tell(TermsRead, site=site, place=place, cut=text, name=found.name)
        elif site in self._told:
            self._scene.tell(TermsRead, site=site)

    def _takes_turns(
        self, site: Site, terms: tuple[Term, ...], found: Term | None, values: dict[str, Any], node: Any
    ) -> bool:
        """Return True if a part without a gradient at one backward pass of a line has one at another: on purpose."""
        operations, reached = below([node])
        tensor = self._scene.torch.Tensor
        sources = {name: value for one in terms for name in one.names if isinstance(value := values.get(name), tensor)}
        made = {name for name, value in sources.items() if value.grad_fn is not None}
        on_tape = {name for name in made if sources[name].grad_fn in operations}
        self._seen.setdefault(site, set()).update(reached, on_tape)
        if found is not None:
            own = {name: sources[name] for name in found.names if name in sources and sources[name].requires_grad}
            cut = (_leaves(own.values()) - reached) | (made.intersection(own) - on_tape)
            self._cut.setdefault(site, set()).update(cut)
        return not self._seen[site].isdisjoint(self._cut.get(site, ()))

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
        if any(_is_draw(cut, values, tensor) for cut in term.cuts):
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

    def _derived(self, site: Site, terms: tuple[Term, ...], values: dict[str, Any], node: Any) -> Iterator[Term]:
        """Yield terms that are computed from derivatives without a graph of tensors that have one."""
        parsed = source.parsed(site.path)
        around = loss_at(parsed, site) if parsed is not None else None
        for term in terms if around is not None else ():
            if (
                term.returned
                or not term.name
                or around is None
                or any(map(self._trains, map(values.get, term.factors)))
            ):
                continue
            for names, call in outputs_of(around[0], term.name):
                end_line, end_column = call.end_lineno or call.lineno, call.end_col_offset or 0
                place = Site(site.path, call.lineno, call.col_offset, end_line, end_column, function=site.function)
                derived = term._replace(names=names, cut=GRAD, place=place, modules=(), others=(), cuts=())
                if self._is_cut(derived, values, node):
                    yield derived

    def _trains(self, value: Any) -> bool:
        return isinstance(value, self._scene.torch.nn.Module)

    def _optimizers(self, leaves: set[int]) -> set[int]:
        """Return the numbers of the optimizers that hold some of these leaves."""
        ledger = self._scene.ledger
        held = [one for leaf in leaves if (one := ledger.by_id.get(leaf)) is not None]
        return {one.panel.number for one in held if one.panel is not None and one.panel is not ledger.free}

    def _is_plain(self, value: Any) -> bool:
        """Return True for a value that holds no other tensors: a collection or a function can hold a whole model.

        Functions and modules are plain if they are those of torch, or built in, and functions that read only such names
        beside their arguments.
        """
        if isinstance(value, BuiltinFunctionType):
            return isinstance(value.__self__, (type, ModuleType, type(None)))
        if isinstance(value, ModuleType):
            return value.__name__.split(".")[0] in _MODULES
        if isinstance(value, FunctionType):
            return _is_of_torch(value) or self._reads_plain(value, _DEEPEST)
        return isinstance(value, (self._scene.torch.Tensor, self._scene.torch.nn.Module, int, float))

    def _reads_plain(self, function: FunctionType, depth: int) -> bool:
        """Return True for a function without a closure, with plain defaults, that reads plain global names only."""
        codes = [code_of(function)]
        for code in codes:
            codes += [one for one in code.co_consts if isinstance(one, CodeType)]
        given = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        given = [one for one in given if one is not None and not isinstance(one, str)]
        if (
            not depth
            or function.__closure__
            or any("IMPORT_NAME" in map(_operation, get_instructions(c)) for c in codes)
        ):
            return False
        scope = function.__globals__
        names = {name for code in codes for name in code.co_names if name in scope and scope[name] is not function}
        for value in (*given, *(scope[name] for name in names)):
            known = isinstance(value, FunctionType) and not _is_of_torch(value)
            if not (self._reads_plain(value, depth - 1) if known else self._is_plain(value)) or self._has_gradient(
                value
            ):
                return False
        return True

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


def _is_of_torch(function: FunctionType) -> bool:
    home = function.__module__ or ""
    return home.split(".")[0] == "torch" and vars(sys.modules.get(home, sys)).get(function.__name__) is function


def _operation(instruction: Instruction) -> str:
    return instruction.opname


def _is_draw(cut: Cut, values: dict[str, Any], tensor: Any) -> bool:
    """Return True for an order of two computed values, one without a gradient: noise that is compared with a chance."""
    if "rand" in cut.text or "bernoulli" in cut.text or "multinomial" in cut.text:
        return True
    compared = [value for name in cut.names if isinstance(value := values.get(name), tensor)]
    ordered = any(sign in cut.text for sign in (" < ", " > ", " <= ", " >= "))
    drawn = any(one.is_floating_point() and one.numel() > 1 and not one.requires_grad for one in compared)
    return ordered and drawn and any(one.requires_grad for one in compared)


def _leaves(tensors: Iterable[Any]) -> set[int]:
    """Return the ids of the leaves that tensors were computed from."""
    tensors = list(tensors)
    made = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    return {id(tensor) for tensor in tensors if tensor.grad_fn is None} | leaves_below(made)


def leaves_below(nodes: list[Any]) -> set[int]:
    """Return the ids of the leaves that operations were computed from."""
    return below(nodes)[1]


def below(nodes: list[Any]) -> tuple[set[Any], set[int]]:
    """Return the operations that operations were computed from, with themselves, and the ids of the leaves."""
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
    return seen, found
