from __future__ import annotations

from collections.abc import Iterator

from truestep.events import BackwardEnded, Event, ValueUnread
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import results
from truestep.syntax import Program, Suspicion

_LABELS = {
    "mask": "true for some elements and false for others, and not applied",
    "graph": "computed from parameters, with a graph for gradients",
    "values": "stored, and not used",
    "sampler": "no loader draws from it",
    "argument": "passed a mask, and its function does not read it",
    "weights": "a number for each class of the loss, which gets none",
    "rebound": "binds the variable to a new tensor",
    "attribute": "a local variable gets the next value of the attribute",
    "state": "drops the state that the call returns",
}


class ResultNeverRead(Rule):
    """A training step makes a result, and nothing reads it.

    What it does
    ------------
    Finds, in the source of the functions that run a training step, variables that are stored and never read, and reads
    their values in the frames at sampled steps. Reports a mask with both values, a result with a graph and other
    tensors that each step makes; of those that are made once before the training, masks, samplers, and weights with a
    number for each class of the loss. Also reports a mask of both values that is passed to a function of the program
    which never reads it, and a statement that is only an operation on a tensor, such as ``scores.masked_fill(mask,
    -1e9)`` or ``weight.data.clamp(-1, 1)``: the operation returns a new tensor, which is dropped; so is the new value
    of the variable of a loop, as in ``for p in parameters: p = p - rate * p.grad``, and the next momentum in a loop
    over a list of momenta that begin as zeros, if nothing stores it in the list; so is the next value of an attribute,
    as in ``mean = 0.9 * self.mean + 0.1 * x.mean()``, if the attribute keeps its value. In training and in evaluation,
    reports a loop that calls a recurrent model with one step of a sequence after the other, always from the same state,
    and never reads the state that the model returns: the next input is made from the result, or only the result of the
    last step is read. The model is a recurrent layer of torch, or its source returns the next state by the name of the
    argument. The syntax shows operations that are statements, and such next values of attributes.

    Why it matters
    --------------
    The step goes on with another value: a loss without its mask, a batch without its augmentation, an outer loss with
    the weights before their adaptation. A decoder without its state knows only the last token. In the proof, the loss
    counts the missing readings that its mask leaves out, and the squared error is 4.8 instead of 0.03.

    Example
    -------
    ::

        mask = targets != 0
        loss = F.cross_entropy(logits, targets, reduction="none").mean()      # without the mask

    Fix
    ---
    Use the result::

        losses = F.cross_entropy(logits, targets, reduction="none")
        loss = (losses * mask).sum() / mask.sum()

    Known false alarms
    ------------------
    A result that is left over from an earlier version of the script and has no effect. Not reported: variables that
    another function or a string names, other names of a value that is read, parts of a result that is unpacked, labels
    that are only moved to a device, arguments of methods and of functions that are called by another name, calls that
    also change an object, and names that begin with an underscore. Of states: samples or candidates that are scored
    from one state, whole sequences and windows, states that the model keeps, calls without a state, other results of a
    model, measurements of time, and inputs from an environment or a random draw.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill.html
    """

    id = "result-never-read"
    since = "0.1"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (ValueUnread,)
    needs = (BackwardEnded,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return results.result_never_read(program)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, ValueUnread):
            return
        if event.kind == "weights" and event.size != run.losses.classes:
            return
        if event.kind == "argument":
            function = event.site.function if event.site is not None else ""
            message = f"`{function}()` gets a mask in its `{event.name}`, and does not read it"
            label, help = _LABELS[event.kind], f"apply `{event.name}` in `{function}()`, or remove it"
        elif event.kind == "state":
            begins = f"begins from the same `{event.name}`"
            message = f"each call in a loop over a sequence {begins}: the next state is never read"
            label, help = _LABELS[event.kind], "pass the state that the call returns to the next call"
        elif event.kind == "rebound":
            message = f"`{event.name}` is a variable of a loop: its new value is lost, and the tensor does not change"
            label, help = _LABELS[event.kind], f"write to the tensor, as by `{event.name}.copy_(...)`"
        elif event.kind == "attribute":
            message = f"nothing reads the new `{event.name}`: the attribute `self.{event.name}` keeps its value"
            label, help = _LABELS[event.kind], f"assign it to `self.{event.name}`"
        elif event.name:
            made = "each step makes" if event.again else "the program makes"
            message = f"{made} `{event.name}`, and nothing reads it"
            label, help = _LABELS[event.kind], f"use `{event.name}` in the step, or remove the line"
        else:
            what = f"of `{event.kind}` " if event.kind != "expression" else "of an expression "
            message = f"the result {what}is dropped: the tensor itself does not change"
            label, help = "returns a new tensor", "store the result in a variable that the step uses"
        unit = "calls" if event.kind == "state" else "steps read"
        draft = self.report(event.site, message, run=run, label=label, help=help, unit=unit)
        if event.kind == "state":
            draft.count = event.size
