"""Evidence from a copy of the model: tensors that training changes, compared with those written to a file."""

from __future__ import annotations

from truestep.events import CheckSkipped, Event, PlainStateCompared, PlainStateSaved, RunEnded, Site
from truestep.findings import Severity
from truestep.rules._conditions import FINISHED
from truestep.rules._rule import Progress, Rule


class CheckpointIncomplete(Rule):
    """A saved state dict lacks tensors that the training has changed and the results depend on.

    What it does
    ------------
    Checks the tensors that a model holds in plain attributes, neither parameters nor buffers. On a
    copy of the model, the rule determines which of them the model's own `forward` writes in train mode only, and if the
    results differ with the values from before the training. It reports a save of the model's state without them.

    Why it matters
    --------------
    ``state_dict()`` ignores plain attributes, and ``load_state_dict`` does not notice that they are missing. The loaded
    model has their initial values and returns other results than the saved one. The proof shows an accuracy of 0.32
    instead of 0.99.

    Example
    -------
    ::

        class Standardise(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.mean = torch.zeros(n)              # no buffer: not in state_dict()

            def forward(self, x):
                if self.training:
                    self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
                return x - self.mean

    Fix
    ---
    Register the tensor as a buffer::

        self.register_buffer("mean", torch.zeros(n))

    Known false alarms
    ------------------
    A tensor that the program writes to a separate file without ``torch.save``. Not reported: tensors that only the
    program around the model changes, that are also written in eval mode (hidden states, caches), that do not affect the
    results, or that any other ``torch.save`` includes; models with their own `state_dict`, `train` or
    `load_state_dict`.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    id = "checkpoint-incomplete"
    since = "0.1"
    severity = Severity.ERROR
    account = "state"
    watches = (PlainStateCompared, PlainStateSaved, CheckSkipped)
    needs = (PlainStateCompared, PlainStateSaved, FINISHED)
    asks = "checkpoints hold the whole state"

    def __init__(self) -> None:
        super().__init__()
        self._depends: dict[int, set[str]] = {}
        """Model to the attributes that belong to its state."""
        self._held: dict[int, set[str]] = {}
        """Model to the attributes that are included in a save."""
        self._missing: dict[int, tuple[Site | None, set[str], int]] = {}
        """Model to the first save without some attributes, these attributes, and the step of the save."""
        self._skipped = ""

    def unobserved(self, run: Progress) -> str:
        return self._skipped if PlainStateCompared not in run.met and self._skipped else super().unobserved(run)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case PlainStateCompared():
                self._depends.setdefault(event.model, set()).update(event.depends)
            case PlainStateSaved():
                self._held.setdefault(event.model, set()).update(event.held)
                if event.missing:
                    site, names, step = self._missing.get(event.model, (event.site, set(), run.step))
                    self._missing[event.model] = site, names | set(event.missing), step
            case CheckSkipped(check="state"):
                self._skipped = event.reason

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how != "finished":
            return
        for model, (site, missing, step) in self._missing.items():
            lost = sorted((missing & self._depends.get(model, set())) - self._held.get(model, set()))
            if lost:
                self._found(model, site, lost, step, run)

    def _found(self, model: int, site: Site | None, lost: list[str], step: int, run: Progress) -> None:
        name, first = run.model_name(model), lost[0].rpartition(".")[2]
        names = ", ".join(f"`{attribute}`" for attribute in lost[:3])
        draft = self.report(
            site,
            f"the saved state of `{name}` lacks {names}, which its training has changed",
            run=run,
            label=f"`state_dict()` does not include {'it' if len(lost) == 1 else 'them'}",
            cost="a copy with the values from before the training returns other results",
            help=f"register each of them in `__init__`, as in `self.register_buffer({first!r}, ...)`",
            unit="models",
        )
        draft.first_step = step
