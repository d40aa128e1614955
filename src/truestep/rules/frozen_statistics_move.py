from __future__ import annotations

from truestep.accounts._account import amount
from truestep.events import BatchStatisticsTaken, Event, ModeSet, OptimizerStepped
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import steps
from truestep.rules._rule import Progress, Rule

_LEAST = 4


class FrozenStatisticsMove(Rule):
    """Layers of batch normalisation are frozen, and their running statistics go on moving.

    What it does
    ------------
    Looks at layers of batch normalisation in train mode with weights that require no gradient and keep their values.
    Reports them if they had statistics of earlier batches when they were first seen frozen, and the model around them
    is trained.

    Why it matters
    --------------
    ``requires_grad_(False)`` freezes parameters. Running statistics are buffers, and follow each batch in train mode.
    The frozen part is not the one that was trained: its outputs depend on the other samples of the batch, and its
    statistics move to the new data, so that in eval mode it computes something else than before.

    Example
    -------
    ::

        backbone.requires_grad_(False)
        model.train()                   # also the normalisation in the backbone

    Fix
    ---
    Set the frozen part to eval mode, after each ``model.train()``::

        model.train()
        model.backbone.eval()

    Known false alarms
    ------------------
    An adaptation of the statistics to new data on purpose. Not reported: layers without statistics when they were
    frozen, layers with weights that are trained or averaged at other times, and layers with trainable weights.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval
    """

    id = "frozen-statistics-move"
    since = "0.1"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    account = "parameters"
    watches = (BatchStatisticsTaken, ModeSet)
    needs = (BatchStatisticsTaken, OptimizerStepped, steps(_LEAST))

    def __init__(self) -> None:
        super().__init__()
        self._set: dict[int | None, ModeSet] = {}
        """The latest call of train() by model; None for a module before its first call."""
        self._looks: dict[int, int] = {}

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ModeSet(training=True):
                self._set[event.model] = event
            case BatchStatisticsTaken(frozen=0):
                self._looks.pop(event.model, None)
            case BatchStatisticsTaken():
                self._looks[event.model] = looks = self._looks.get(event.model, 0) + 1
                if looks >= _LEAST:
                    self._found(event, looks, run)

    def _found(self, event: BatchStatisticsTaken, looks: int, run: Progress) -> None:
        name, switched = run.model_name(event.model), self._set.get(event.model) or self._set.get(None)
        site = switched.site if switched is not None else event.site
        draft = self.report(
            site,
            f"the statistics of {amount(event.frozen, 'frozen layer')} of `{name}` go on moving",
            run=run,
            label=f"sets the frozen layers of `{name}` to train mode" if switched is not None else "in train mode",
            related=(Mark(event.site, f"`{name}` is trained here"),) if site != event.site else (),
            help="call `eval()` on the frozen part after each `train()`",
            unit="sampled steps",
            key=event.model,
        )
        draft.count = draft.total = looks
        draft.cost = "in eval mode these layers compute something else than when they were frozen"
