"""Evidence from the modes of layers at the call that exports a model, once the exported program is saved."""

from __future__ import annotations

from truestep.events import Event, ModelExported
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule


class ExportedInTrainMode(Rule):
    """A model is exported in train mode: the saved program drops values, or normalises by its batch, in every call.

    What it does
    ------------
    Reads the mode of each layer when `torch.export.export` or `torch.jit.trace` exports a model. Reports an exported
    program that is saved, if the model was in train mode, with dropout of a probability above 0 (also
    that of a recurrent layer or of attention) or batch normalisation in train mode. Without such a layer, an export in
    train mode is not judged, since a call of `F.dropout` in `forward` is in no layer.

    Why it matters
    --------------
    The mode is a constant of the exported program. `eval()` of a loaded trace has no effect on it, and that of a
    program of `torch.export` raises an error. Predictions are random with dropout, and depend on the other samples of
    the batch with batch normalisation. In the proof, the loaded program has an accuracy of 0.83 instead of 0.88.

    Example
    -------
    ::

        train(model)
        program = torch.export.export(model, (x,))      # in train mode
        torch.export.save(program, "model.pt2")

    Fix
    ---
    Set the mode before the export::

        model.eval()
        program = torch.export.export(model, (x,))

    Known false alarms
    ------------------
    A program that is saved in order to be trained further elsewhere. Not reported: programs that are not saved, as in
    quantisation-aware training; single layers that are in train mode within a model in evaluation mode;
    `torch.jit.script`, whose program keeps the mode as a state; `torch.onnx.export`, which exports these layers as in
    evaluation.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/export.html
    - https://docs.pytorch.org/docs/stable/generated/torch.jit.trace.html
    """

    id = "exported-in-train-mode"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "state"
    watches = (ModelExported,)
    needs = (ModelExported,)

    def __init__(self) -> None:
        super().__init__()
        self._judged = False

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or (
            "" if self._judged else "no layer of the exported model is known to depend on the mode"
        )

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, ModelExported):
            return
        self._judged |= not event.training or event.layers > 0  # a call of `F.dropout` is in no layer
        if not event.training or not event.layers:
            return
        layer = f"`{event.layer}` ({event.kind})" if event.layer else event.kind
        more = f" and {event.layers - 1} more" if event.layers > 1 else ""
        self.report(
            event.site,
            f"`{event.name}` is exported in train mode, with {layer}{more}",
            run=run,
            label="exports the layers as in training",
            related=(Mark(event.saved, "saves the program"),) if event.saved else (),
            help=f"call `{event.name}.eval()` before the export",
            cost="the loaded program has other outputs than the model, and `eval()` does not change it",
            unit="exports",
        )
