from __future__ import annotations

from truestep.events import Event, SampleUsed, TapeRead
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._readings import ReadingRule
from truestep.rules._rule import Progress


class SampleWithoutGradient(ReadingRule):
    """A module is trained on samples of a distribution with trained parameters, and the samples have no gradient.

    What it does
    ------------
    Follows the values that ``sample()`` of torch's distributions returns at sampled steps, and those of
    ``torch.normal`` with a computed mean and spread. Reports those that a module gets, if the distribution has
    ``rsample()``, and if one loss reaches both the module and, by another way, the parameters of the distribution: an
    encoder by its KL divergence, and its decoder by the reconstruction.

    Why it matters
    --------------
    ``sample()`` runs without gradients. The encoder learns from the other terms only: a KL divergence alone makes its
    distribution the prior, and the decoder gets noise. The loss falls all the same. In the proof, the squared error of
    the reconstruction stays that of the mean of the data.

    Example
    -------
    ::

        posterior = Normal(mean, scale)
        decoded = decoder(posterior.sample())
        loss = mse_loss(decoded, x) + kl_divergence(posterior, prior).mean()

    Fix
    ---
    Draw with the reparametrisation, which has a gradient::

        decoded = decoder(posterior.rsample())

    Known false alarms
    ------------------
    A part that is trained on samples of another part on purpose, with the terms of both in one loss. Not reported:
    samples or distributions with a ``log_prob()`` in the step (policy gradients, likelihoods), modules that get their
    own predictions, distributions that the loss does not reach, samples that a module gets in other forms than alone
    or beside other columns, and samples of ``torch.normal`` that the script computes with, as for a density, or with a
    mean that other trained modules get too.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/distributions.html#pathwise-derivative
    """

    id = "sample-without-gradient"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "gradients"
    explains = ("inputs-on-another-scale",)
    watches = (SampleUsed,)
    needs = (TapeRead,)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, SampleUsed) or not self.shown(event.site, run):
            return
        function = event.kind.startswith("torch.")
        drawn = f"`{event.kind}`" if function else f"`sample()` of {event.kind}"
        self.report_line(
            event.site,
            event.site,
            f"{drawn} drops the gradient, and a loss behind the sample cannot train its parameters",
            run=run,
            label="drawn without a gradient",
            related=(Mark(event.loss, "the backward pass of the loss"),) if event.loss else (),
            help="scale noise: `mean + scale * torch.randn_like(scale)`" if function else "draw with `rsample()`",
            cost=f"the loss behind the sample trains {run.parameter_names(event.parameters)} only",
            unit="backward passes read",
        )
