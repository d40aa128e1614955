"""Names of torch that have been replaced by others."""

from __future__ import annotations

from typing import cast

import libcst as cst

from truestep.fixes.editing.program import Uncertain, dotted
from truestep.fixes.fix import Fix

_OLD = {"torch.cuda.amp": "cuda", "torch.cpu.amp": "cpu"}
_NAMES = frozenset({"GradScaler", "autocast", "custom_bwd", "custom_fwd"})
_POSITIONAL = {"autocast": ("enabled", "dtype", "cache_enabled"), "custom_fwd": (), "custom_bwd": ()}


class CurrentAmp(Fix):
    """Use `torch.amp`, which takes the type of the device."""

    rules = ("deprecated-amp-api",)
    does = "uses `torch.amp` with the type of the device, for all calls of the file"

    def edit(self) -> None:
        self.statement()
        found = False
        for node in self.program.nodes:
            if isinstance(node, cst.Call):
                found |= self._call(node)
            elif isinstance(node, cst.ImportFrom):
                found |= self._import(node)
        if not found:
            raise Uncertain
        self.title = "Use `torch.amp`"

    def _call(self, call: cst.Call) -> bool:
        module, _, name = self.names.full(call.func).rpartition(".")
        if module not in _OLD or name not in _NAMES:
            return False
        device = _OLD[module]
        if any(arg.star for arg in call.args):
            raise Uncertain
        code = self.program.code
        texts = [code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in call.args]
        if name == "GradScaler":
            texts = [f'"{device}"', *texts]
        elif name == "autocast":
            keywords = iter(_POSITIONAL["autocast"])
            named = [
                t if arg.keyword is not None else f"{next(keywords)}={t}"
                for arg, t in zip(call.args, texts, strict=True)
            ]
            texts = [f'"{device}"', *named]
        else:
            texts = [*texts, f'device_type="{device}"']
        written = code(call.func)
        new = written if "." not in written else self._renamed(call.func, module)
        self.edits.replace(call, f"{new}({', '.join(texts)})")
        return True

    def _renamed(self, func: cst.BaseExpression, module: str) -> str:
        """Return the name of a function in `torch.amp`, written as the file does."""
        written = dotted(func)
        name = written.rpartition(".")[2]
        if written == f"{module}.{name}":
            return f"torch.amp.{name}"
        head = written.rpartition(".")[0]  # such as `amp` of `from torch.cuda import amp`
        return f"{head}.{name}" if "." not in head else f"{self.names.local('torch.amp', self.edits)}.{name}"

    def _import(self, node: cst.ImportFrom) -> bool:
        module = dotted(cast("cst.BaseExpression", node.module)) if node.module is not None else ""
        if module in _OLD:
            names = () if isinstance(node.names, cst.ImportStar) else node.names
            if not names or any(cast("cst.Name", alias.name).value not in _NAMES for alias in names):
                raise Uncertain
            self._check_calls({_local(alias) for alias in names})
            self.edits.change(node, lambda old: old.with_changes(module=cst.parse_expression("torch.amp")))
            return True
        if module in ("torch.cuda", "torch.cpu") and not isinstance(node.names, cst.ImportStar):
            if any(cast("cst.Name", alias.name).value == "amp" for alias in node.names):
                if len(node.names) > 1:
                    raise Uncertain
                self.edits.change(node, lambda old: old.with_changes(module=cst.Name("torch")))
                return True
        return False

    def _check_calls(self, names: set[str]) -> None:
        """Raise an error if an imported name is read otherwise than by calls, as in a decorator without parentheses."""
        for node in self.program.nodes:
            if isinstance(node, cst.Name) and node.value in names:
                parent = self.program.parent(node)
                if isinstance(parent, cst.Call | cst.ImportAlias | cst.Attribute | cst.Arg | cst.AsName):
                    continue
                raise Uncertain


def _local(alias: cst.ImportAlias) -> str:
    if alias.asname is not None:
        return cast("cst.Name", alias.asname.name).value
    return cast("cst.Name", alias.name).value
