"""Layers and tensors that a module does not register, or makes with wrong settings."""

from __future__ import annotations

import re

import libcst as cst

from truestep.fixes.editing.program import Uncertain, argument, dotted, only
from truestep.fixes.fix import Fix

_LISTS = frozenset({"list", "tuple"})
_NORMS = (
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "SyncBatchNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
)


class RegisterLayers(Fix):
    """Register layers in a list or a dict, or a plain tensor as a parameter."""

    rules = ("layers-in-plain-container",)
    does = "makes a list of layers an `nn.ModuleList`, a dict an `nn.ModuleDict`, a tensor with gradients a parameter"
    unsafe_if = "keys of a dict may be other than strings"

    def edit(self) -> None:
        tensor = re.match(r"`([\w.]+)(?:\[.*\])?` of `(\w+)` is a plain tensor", self.wanted.message)
        if tensor is not None:
            self._tensor(tensor[1], tensor[2])
        else:
            self._layers()

    def _layers(self) -> None:
        container = self._container()
        assigned = self.names.assignments(container, self._near())
        if len(assigned) != 1:
            raise Uncertain
        made = self.names.made(assigned[0][1], assigned[0][0]) if dotted(assigned[0][1]) else assigned[0][1]
        value = assigned[0][1]
        if isinstance(made, cst.List | cst.ListComp | cst.Tuple) or self._is_call_of(made, _LISTS):
            kind, empty = "ModuleList", isinstance(made, cst.List | cst.Tuple) and not made.elements
        elif isinstance(made, cst.Dict | cst.DictComp):
            kind, empty = "ModuleDict", isinstance(made, cst.Dict) and not made.elements
        else:
            raise Uncertain
        self._check_elements(made, kind)
        name = f"{self._nn()}.{kind}"
        self.edits.replace(value, f"{name}({'' if empty and value is made else self.program.code(value)})")
        self.title = f"Make `{container}` an `{name}`"

    def _container(self) -> str:
        """Return the attribute that holds the layers.

        Raises:
            Uncertain: the place does not show it, and the finding does not name it.
        """
        named = re.search(r"`(self\.\w+)`.*`nn\.Module(?:List|Dict)`", self.wanted.help)
        if named is not None:
            return named[1]
        near = self._near()
        statement = near if isinstance(near, cst.Assign) else None
        if statement is not None and len(statement.targets) == 1:  # the syntax shows where the list is made
            name = dotted(statement.targets[0].target)
            if name.startswith("self."):
                return name
        raise Uncertain

    def _near(self) -> cst.CSTNode:
        statement = self.statement()
        if self.program.around(statement, cst.ClassDef) is not None:
            return statement
        raise Uncertain

    def _check_elements(self, made: cst.BaseExpression, kind: str) -> None:
        """Raise an error for lists of lists, and for keys that are not strings."""
        if isinstance(made, cst.List | cst.Tuple):
            if any(
                isinstance(one.value, cst.List | cst.Tuple | cst.Dict) or isinstance(one, cst.StarredElement)
                for one in made.elements
            ):
                raise Uncertain
        elif isinstance(made, cst.ListComp):
            if isinstance(made.elt, cst.List | cst.Tuple | cst.Dict | cst.BaseComp):
                raise Uncertain
        elif isinstance(made, cst.Dict):
            for one in made.elements:
                if not isinstance(one, cst.DictElement) or not isinstance(one.key, cst.BaseString):
                    raise Uncertain
        elif isinstance(made, cst.DictComp):
            if not isinstance(made.key, cst.FormattedString) and not self._is_call_of(made.key, frozenset({"str"})):
                self.safe = False  # a key of another type is an error

    def _is_call_of(self, node: cst.BaseExpression, names: frozenset[str]) -> bool:
        return isinstance(node, cst.Call) and dotted(node.func) in names

    def _nn(self) -> str:
        return self.names.local("torch.nn", self.edits)

    def _tensor(self, name: str, kind: str) -> None:
        attribute = f"self.{name.rpartition('.')[2]}"
        owner = only(node for node in self.program.nodes if isinstance(node, cst.ClassDef) and node.name.value == kind)
        value = self.names.value(attribute, owner.body)
        if not isinstance(value, cst.Call):
            raise Uncertain
        asked = next(
            (arg for arg in value.args if arg.keyword is not None and arg.keyword.value == "requires_grad"), None
        )
        full = self.names.full(value.func)
        if not full.startswith("torch.") or asked is None or dotted(asked.value) != "True":
            raise Uncertain
        rest = ", ".join(
            self.program.code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT))
            for arg in value.args
            if arg is not asked
        )
        self.edits.replace(value, f"{self._nn()}.Parameter({self.program.code(value.func)}({rest}))")
        self.title = f"Make `{attribute}` an `nn.Parameter`"


class BatchFirst(Fix):
    """Create the layer for batches in front."""

    rules = ("batch-first-missing",)
    does = "creates the layer with `batch_first=True`"
    unsafe_if = "always"

    def edit(self) -> None:
        if "`batch_first=True`" not in self.wanted.help and self.wanted.help:
            raise Uncertain
        call = self.call()
        made = self.names.value(dotted(call.func), call) if dotted(call.func) else None
        if not isinstance(made, cst.Call) or not self.names.full(made.func).startswith("torch.nn."):
            raise Uncertain
        old = argument(made, -1, "batch_first")
        if old is not None and dotted(old.value) != "False":
            raise Uncertain
        self.edits.set_argument(made, old, "batch_first", "True")
        self.title = f"Create `{dotted(call.func)}` with `batch_first=True`"


class DefaultEps(Fix):
    """Leave out a number of channels that was passed as `eps`."""

    rules = ("layer-setting-out-of-range",)
    does = "leaves out a second number of channels, which a layer of normalisation takes as `eps`"
    unsafe_if = "always"

    def edit(self) -> None:
        call = self.call()
        name = self.names.full(call.func).rpartition(".")[2]
        first, second = argument(call, 0, "num_features"), argument(call, 1, "eps")
        if name not in _NORMS or first is None or second is None or second.keyword is not None or len(call.args) != 2:
            raise Uncertain
        same = self.program.code(first.value.with_changes()) == self.program.code(second.value)
        if not same and not isinstance(second.value, cst.Integer):
            raise Uncertain
        self.edits.drop_argument(call, second)
        self.title = "Leave out `eps`"
