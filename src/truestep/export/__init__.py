"""Export of a trained model: traced, written, loaded again in a fresh process and compared with eager.

    exported = export(model, "exports/onnx", to="onnx", batches=loader)

exporting     `export`: the whole way from a model to a verified folder
calls         the tensors of one call of a model, by name, from a batch
examples      calls from a loader or a file, and calls of edge shapes
shapes        the dimensions that are free in an exported graph
tracing       `torch.export`, in eval mode
refusals      errors of the trace, explained at the line of the model that stops it
causes        texts of the errors: the fact, the reason, the usual mend
side_effects  changes that a forward pass makes outside of its outputs
comparing     the comparison of outputs in a fresh process
child         the program of that process
config_file   `config.json`: the inputs and outputs, and how the model is built again
factories     a model from `module:factory`
card          the model card
text          the report, for a terminal
outputs       outputs as lists of tensors, and their differences
formats       one file per format: write, load
int8          quantised linear layers: accuracy, speed and size before and after
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truestep._lazy import attribute

if TYPE_CHECKING:
    from truestep.export.comparing import Comparison
    from truestep.export.exporting import Exported, export

__all__ = ["Comparison", "Exported", "export"]

_HOMES = {
    "Comparison": "truestep.export.comparing",
    "Exported": "truestep.export.exporting",
    "export": "truestep.export.exporting",
}


def __getattr__(name: str) -> object:
    return attribute(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
