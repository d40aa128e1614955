from __future__ import annotations

from truestep.events import Event, NoiseScaled
from truestep.findings import Confidence, Severity
from truestep.rules._readings import ReadingRule
from truestep.rules._rule import Progress


class NoiseScaledByVariance(ReadingRule):
    """The noise in the inputs of a diffusion model is scaled by its variance, not by its standard deviation.

    What it does
    ------------
    Looks in training for an input that is a sum of two variables of its shape, one of which is drawn (``randn``), with
    a share of each for each sample. Reports an input if the square of the share of the other variable, plus the share
    of the noise, is 1 in all samples, at three sampled steps. In a process that keeps the variance, the squares of both
    shares add up to 1.

    Why it matters
    --------------
    The model is trained on inputs with less noise than those that the sampler gives it: the sampler computes with the
    standard deviation. The loss falls as usual. In the proof, a model of digits, samples lie 3.9 from the nearest
    held-out digit instead of 3.5; other digits lie at 2.7.

    Example
    -------
    ::

        noise = torch.randn_like(x)
        noisy = kept[t].sqrt() * x + (1 - kept[t]) * noise

    Fix
    ---
    Take the square root of both shares::

        noisy = kept[t].sqrt() * x + (1 - kept[t]).sqrt() * noise

    Known false alarms
    ------------------
    None known. Not reported: processes in which the samples keep their scale, straight paths (shares that add up to 1),
    shares that are the same in all samples and steps (a denoising autoencoder), noise or samples without a variable
    where the model is called, inputs of less than two numbers for each sample, and tensors on accelerators.

    References
    ----------
    - https://arxiv.org/abs/2006.11239
    """

    id = "noise-scaled-by-variance"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (NoiseScaled,)
    needs = (NoiseScaled,)
    asks = "noise in an input is scaled by its standard deviation"

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, NoiseScaled) or not self.shown(event.site, run, right=not event.wrong):
            return
        self.report_line(
            event.site,
            event.site,
            "the noise in the input is scaled by its variance, not by its standard deviation",
            run=run,
            label="square of the share of the samples + share of the noise = 1, in each sample",
            cost="the model learns on less noise than a sampler gives it",
            help="take the square root of the share of the noise",
            unit="inputs read",
        )
