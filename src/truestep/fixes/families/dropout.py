"""Dropout that does not follow the mode of the model."""

from __future__ import annotations

import libcst as cst

from truestep.fixes.editing.program import Uncertain, argument, dotted
from truestep.fixes.fix import Fix

_DROPOUTS = frozenset({
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout",
})  # fmt: skip


class DropoutByMode(Fix):
    """Pass the mode of the module to the function."""

    rules = ("functional-dropout-always-on",)
    does = "passes `training=self.training` to the function, or no rate to attention in eval mode"

    def edit(self) -> None:
        call = self.call()
        function, owner = self.program.function(call), self.program.around(call, cst.ClassDef)
        if not isinstance(function, cst.FunctionDef) or owner is None or not function.params.params:
            raise Uncertain
        this = function.params.params[0].name.value
        if this != "self" or self.program.function(function) is not None:
            raise Uncertain
        full = self.names.full(call.func)
        name = full.rpartition(".")[2]
        if name == "scaled_dot_product_attention":
            rate = argument(call, 4, "dropout_p")
            if rate is None or isinstance(rate.value, cst.IfExp):
                raise Uncertain
            self.edits.replace(rate.value, f"{self.program.code(rate.value)} if self.training else 0.0")
            self.title = "Drop attention weights in train mode only"
            return
        if not full.startswith("torch.") or name not in _DROPOUTS:
            raise Uncertain
        keyword = "training" if full.startswith("torch.nn.functional.") else "train"
        mode = argument(call, 2, keyword)
        if mode is not None and dotted(mode.value) != "True":
            raise Uncertain
        self.edits.set_argument(call, mode, keyword, "self.training")
        self.title = "Pass `training=self.training` to the dropout"
