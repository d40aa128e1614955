"""Causes that stop an export: the fact, the reason that a graph cannot contain it, and the usual mend."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

MASK = "torch.where(condition, a, b), or torch.cond(condition, f, g, (x,)) for expensive branches"


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


SCRIPTED = Cause(
    "scripted-model",
    r"ScriptModule|torch\.jit",
    "calls a module that torch.jit has compiled",
    "torch.jit is deprecated, and torch.export reads Python",
    "build the model without torch.jit.script and torch.jit.trace, and export that",
)
RANDOM = Cause(
    "random-in-forward",
    r" @ .*\bgenerator=",
    "draws random numbers in eval mode",
    "the outputs of the exported model cannot be compared with those of the model",
    "pass the random numbers as an input, or draw them only `if self.training:`",
)
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
        r"(Could not guard on data-dependent|^aten\.(equal|allclose|is_nonzero)\b).*"
        r" @ .*\b(if|while|assert|elif|and|or|not)\b",
        "chooses by the values of a tensor",
        "a graph is the record of one way through forward, and would compute that way for every input",
        f"write {MASK}; check values, such as for NaN, around the model",
    ),
    Cause(
        "value-of-a-tensor",
        r"Could not (extract specialized|guard on data-dependent)|data-dependent|_local_scalar_dense|\.item\(\)|"
        r"^aten\.(equal|allclose|is_nonzero)\b",
        "makes a number of Python from a value of a tensor",
        "the number is unknown when the graph is recorded, and Python needs it there",
        "keep it a tensor, without int(), float(), bool() and .item(); instead of a range or a slice, mask by a "
        "comparison with torch.arange(...)",
    ),
    Cause(
        "tensor-of-tensors",
        r"data is not allocated yet.* @ .*\btensor\(",
        "makes a tensor from the values of other tensors",
        "the values are unknown when the graph is recorded",
        "write torch.stack([...]) for torch.tensor([...]), and x.clone() for torch.tensor(x)",
    ),
    Cause(
        "output-is-no-tensor",
        r"not a known type|not registered|Unsupported output type|output.*(is of type|must be a).*",
        "returns an object that is neither a tensor nor a container of tensors",
        "a graph returns tensors, in tuples, lists and dictionaries",
        "return a tensor, a tuple or a dictionary of tensors",
    ),
    RANDOM,
    SCRIPTED,
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
FIXED_LOOP = replace(
    FIXED_SIZE,
    happened="repeats code for each element of a dimension that is to be free",
    mend="compute all elements at once: layers take the whole tensor",
)
FIXED_BRANCH = replace(
    FIXED_SIZE,
    happened="chooses by the size of a dimension that is to be free",
    mend="write code that is right for every size, or fix that of the batch with fixed_batch=True (--fixed-batch)",
)
CHOSEN_SIZE = replace(FIXED_BRANCH, why="the exported model would accept only sizes with the same choice")
FIXED_NUMBER = replace(FIXED_SIZE, mend="write x.shape[0], without len() and int(), which make a number of Python")
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
DROPOUT = Cause(
    "dropout-always-on",
    "",
    "drops values in eval mode, too",
    "the dropout would be a part of the exported model",
    "drop in train mode only: training=self.training, dropout_p=p if self.training else 0.0, or nn.Dropout",
)
LAYER = Cause(
    "layer-in-forward",
    "",
    "builds a layer with new random weights at each call",
    "its weights are not trained, and outputs differ from call to call",
    "build the layer in __init__, as self.layer = ...",
)
DISTRIBUTION = Cause(
    "distribution-in-forward",
    "",
    "builds a distribution, which checks the values of its parameters",
    "a graph has no values to check, and samples are random",
    "return the parameters, and build the distribution outside; without samples, pass validate_args=False",
)
BATCH_STATISTICS = Cause(
    "batch-statistics",
    "",
    "normalises by the statistics of the batch in eval mode",
    "in ONNX it would use the running statistics, and give other outputs",
    "leave .train() out of forward, or export to pt2 or aoti",
)
SPARSE = Cause(
    "sparse-output",
    "",
    "returns a tensor that is sparse or nested",
    "outputs of an export are dense tensors",
    "return y.to_dense(), or a padded tensor",
)
GRADIENT = Cause(
    "gradient-in-forward",
    "",
    "computes a gradient",
    "a graph is the record of the forward pass alone",
    "write the derivative with operations of torch, or compute it outside of the model",
)
DATA = Cause(
    "data-of-a-tensor",
    "",
    "takes a tensor out of the graph by .data",
    "operations on it are not recorded",
    "write x.detach() for x.data",
)
UNREPEATABLE = Cause(
    "not-repeatable",
    "",
    "gives other outputs for the same inputs, in eval mode",
    "they depend on something besides the inputs, such as a generator, a global variable or the clock",
    "pass it as an input",
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


def fixed_size(code: str, method: str) -> Cause:
    """Return the cause for a line that fixes a size.

    Args:
        code: the line of the model; "" if it is unknown.
        method: the method that the line has called, such as "__iter__" of a tensor and "__index__" of a size.

    Example:
        >>> fixed_size("x = torch.cat([self.first.expand(len(x), -1), x])", "__index__").mend
        'write x.shape[0], without len() and int(), which make a number of Python'
    """
    made_number = method in ("__index__", "__int__")
    if method == "__iter__" or re.search(r"\bunbind\(|\bsplit\(1\b", code) or (made_number and "range(" in code):
        return FIXED_LOOP
    if method == "__bool__":
        return CHOSEN_SIZE
    if made_number and re.search(r"\b(if|elif|while|assert)\b", code):
        return FIXED_BRANCH
    return FIXED_NUMBER if made_number else FIXED_SIZE


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
