from __future__ import annotations

from truestep.events import Event, NoiseCompared
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule


class NoiseNotInInput(Rule):
    """A model is to predict noise that its input does not contain.

    What it does
    ------------
    Compares, over the sampled steps of a training, a target that is drawn for the loss alone with an input of the same
    shape that the program mixes with noise. At the end of the run, reports a target without a correlation with the
    input, within four standard errors, of which the model has learned nothing.

    Why it matters
    --------------
    Noise that is not in the input cannot be predicted: the loss stays at 1, and the model returns zeros. In the proof,
    which samples points of two arcs, the distance to the arcs is 6.1 instead of 0.11.

    Example
    -------
    ::

        noisy = a[t].sqrt() * x + (1 - a[t]).sqrt() * torch.randn_like(x)
        loss = F.mse_loss(model(noisy, t), torch.randn_like(x))     # other noise

    Fix
    ---
    Draw the noise once, and use the same in the input and in the loss::

        noise = torch.randn_like(x)
        noisy = a[t].sqrt() * x + (1 - a[t]).sqrt() * noise
        loss = F.mse_loss(model(noisy, t), noise)

    Known false alarms
    ------------------
    None known. Not reported: noise that other statements use too, inputs without noise, as in tests of speed with
    random targets, targets that are computed from noise (velocities, scores), several calls of models for one loss, and
    further inputs of the same shape.

    References
    ----------
    - https://arxiv.org/abs/2006.11239
    """

    id = "noise-not-in-input"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (NoiseCompared,)
    needs = (NoiseCompared,)
    explains = ("loss-at-chance", "loss-never-changes")
    asks = "noise to predict is in the input"

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, NoiseCompared):
            return
        related = [(event.given, "makes the input")]
        if event.loss and event.site and event.loss.line != event.site.line:
            related.append((event.loss, "the loss"))
        self.report(
            event.site,
            f"`{run.model_name(event.model)}` is to predict noise that is not in its input",
            run=run,
            label=f"draws the target: no correlation with the input in {event.samples:,} values",
            related=tuple(Mark(site, label) for site, label in related if site is not None),
            cost="nothing of this target can be learned",
            help="draw the noise once, and use it in the input and in the loss",
            unit="checks",
            key=event.model,
        )
