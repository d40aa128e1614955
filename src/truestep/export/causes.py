"""Causes that stop an export: the fact, the reason that a graph cannot contain it, and the usual mend."""

from __future__ import annotations

import re
from dataclasses import dataclass

TORCH_COND = "torch.where(condition, a, b), or torch.cond(condition, f, g, (x,)) for expensive branches"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause.

    Attributes:
        slug: its name, in kebab case.
        pattern: found in torch's message, or in the code of the line after " @ "; "" for causes that are found in
            another way.
        happened: fact about the line of the model, in the form "`code` ...".
        why: why a graph cannot contain it.
        mend: one imperative.
    """

    slug: str
    pattern: str
    happened: str
    why: str
    mend: str


CAUSES = (
    Cause(
        "packed-sequence",
        r"argument 'size' failed to unpack.*FakeTensor| @ .*pack(ed)?_(padded_)?sequence",
        "packs sequences, by lengths that are values of a tensor",
        "an exported graph has no packed sequences, since their shape depends on the lengths",
        "pass the padded tensor to the layer, and read each state at its length: `output[rows, lengths - 1]`",
    ),
    Cause(
        "tensor-as-text",
        r"__format__|__str__ .*FakeTensor",
        "formats the value of a tensor as text",
        "a graph computes tensors only: text is made by Python, from values that do not exist yet",
        "delete it from forward, and print in the loop around the model",
    ),
    Cause(
        "numpy-in-forward",
        r"\.numpy\(\)|numpy.*(FakeTensor|tensor subclass)|__array__|Cannot convert a symbolic",
        "converts a tensor to numpy",
        "a graph records operations of torch only",
        "use the function of torch with the same name",
    ),
    Cause(
        "data-dependent-control-flow",
        r"Could not guard on data-dependent.* @ .*\b(if|while|assert|elif|and|or|not)\b",
        "chooses by the values of a tensor",
        "a graph is the record of one way through forward, and would compute that way for every input",
        f"write {TORCH_COND}",
    ),
    Cause(
        "value-of-a-tensor",
        r"Could not (extract specialized|guard on data-dependent)|data-dependent|_local_scalar_dense|\.item\(\)",
        "makes a number of Python from a value of a tensor",
        "the number is unknown when the graph is recorded, and a size, a range or an index depends on it",
        "keep it a tensor: compare it with torch.arange(...), and mask",
    ),
    Cause(
        "output-is-no-tensor",
        r"not a known type|not registered|Unsupported output type|output.*(is of type|must be a).*",
        "returns an object that is neither a tensor nor a container of tensors",
        "a graph returns tensors, in tuples, lists and dictionaries",
        "return a tensor, a tuple or a dictionary of tensors",
    ),
    Cause(
        "scripted-model",
        r"ScriptModule|torch\.jit",
        "is compiled by torch.jit",
        "torch.jit is deprecated, and torch.export reads Python",
        "export the module before torch.jit.script or torch.jit.trace",
    ),
    Cause(
        "unknown-operator",
        r"No ONNX function found|UnsupportedOperator|Missing.*(decomposition|lowering)|no decomposition",
        "uses an operator that the format does not have",
        "ONNX has its own list of operators, and this one has no counterpart in it",
        "export to pt2 or aoti, or write it with other operators",
    ),
)

FIXED_SIZE = Cause(
    "fixed-size",
    "",
    "fixes the size of a dimension that is to be free",
    "the exported model would accept no other size",
    "take the size from the input, such as `x.shape[0]`, or write -1 for it in view and reshape",
)
IN_PLACE = Cause(
    "in-place-on-input",
    "",
    "changes an input in place",
    "the exported model would change the tensors of its caller, which ONNX cannot express",
    "write an operation that makes a new tensor: `x = x + 1` for `x += 1`, `x.relu()` for `x.relu_()`",
)
SIDE_EFFECT = Cause(
    "side-effect",
    "",
    "changes the model, and outputs depend on it",
    "a graph has no attributes of Python: the value at the export would be used for ever",
    "pass the state as an input, and return its new value as an output",
)
RANDOM = Cause(
    "random-in-forward",
    "",
    "draws random numbers in eval mode",
    "the outputs of the exported model cannot be compared with those of the model",
    "pass the random numbers as an input, or draw them only `if self.training:`",
)
DROPOUT = Cause(
    "dropout-always-on",
    "",
    "drops values in eval mode, too",
    "the dropout would be a part of the exported model",
    "pass training=self.training to it, or use nn.Dropout",
)
PYTHON_RANDOM = Cause(
    "python-random",
    "",
    "draws random numbers of Python or numpy",
    "the number of the export would be a constant of the graph",
    "use torch.rand, and only `if self.training:`",
)
OTHER = Cause(
    "not-exportable",
    "",
    "cannot be recorded by torch.export",
    "",
    "write the line with operations of torch, with shapes that do not depend on values",
)


def cause_of(message: str, code: str) -> Cause:
    """Return the cause for an error of torch.

    Args:
        message: the text of the error.
        code: the line of the model that raised it.

    Example:
        >>> cause_of("Could not guard on data-dependent expression Eq(u0, 1)", "if x.sum() > 0:").slug
        'data-dependent-control-flow'
        >>> cause_of("Could not extract specialized integer from data-dependent expression u0", "k = n.item()").slug
        'value-of-a-tensor'
    """
    text = f"{' '.join(message.split())} @ {code}"
    return next((cause for cause in CAUSES if re.search(cause.pattern, text)), OTHER)
