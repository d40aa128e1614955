"""Settings of layers out of their range."""

from __future__ import annotations

import libcst as cst

from truestep.fixes.editing.program import Uncertain, argument
from truestep.fixes.fix import Fix

_NORMS = (
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "SyncBatchNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
)


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
