"""The weight of the divergence is exact: sums, means and numbers on the way from both terms to the loss are read."""

from __future__ import annotations

from collections import defaultdict

from truestep.events import DivergenceRead, Event, OptimizerStepped, RunEnded, Site
from truestep.findings import Confidence, Severity
from truestep.rules._conditions import FINISHED, steps
from truestep.rules._rule import Progress, Rule

_LEAST_WEIGHT = 8.0
_LEAST_STEPS = 100
_LEAST_READS = 3
_FIRST = 50
"""Steps in which distributions may be equal still, as at first."""
_NOTHING = 0.05
"""Nats of a sample that carry nothing: one bit is 0.69."""
_EQUAL = 0.01


class KlOutweighsReconstruction(Rule):
    """The KL divergence of a variational autoencoder outweighs the reconstruction: the latent variables carry nothing.

    What it does
    ------------
    Recognizes the divergence from the standard normal distribution in a loss by its terms, squared means and variances
    minus their logarithms, and reads how it and the reconstruction error are reduced and scaled. Reports a divergence
    that counts 8 times or more as much as in the evidence lower bound, where both are sums over the values of a sample,
    if it is below 0.05 nats for each sample in the last sampled steps of 100 or more.

    Why it matters
    --------------
    With a mean over the values of the reconstruction and a sum over the latent variables, the divergence counts as many
    times too much as a sample has values. The encoder then returns the same distribution for every sample, and the
    decoder the mean of the data. The loss falls, and is low. In the proof, with 64 values, the error on held-out points
    is 0.087 instead of 0.015.

    Example
    -------
    ::

        error = F.mse_loss(output, x)                                       # a mean over 64 values
        kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()       # a sum over 8 latent variables
        loss = error + kl

    Fix
    ---
    Add up both over the values of a sample, and take the mean over samples::

        error = F.mse_loss(output, x, reduction="sum") / len(x)

    Known false alarms
    ------------------
    Data without structure, such as noise, of which latent variables carry nothing with any weight. Not reported: a
    divergence that counts less, such as one with a small factor, a factor that grows from zero while it is small, and
    distributions that still differ from sample to sample.

    References
    ----------
    - https://arxiv.org/abs/1312.6114
    - https://openreview.net/forum?id=Sy2fzU9gl
    """

    id = "kl-outweighs-reconstruction"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    watches = (DivergenceRead,)
    needs = (DivergenceRead, OptimizerStepped, steps(_LEAST_STEPS), FINISHED)

    def __init__(self) -> None:
        super().__init__()
        self._reads: dict[Site | None, list[tuple[int, DivergenceRead]]] = defaultdict(list)

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, DivergenceRead):
            self._reads[event.site].append((run.step, event))

    def ended(self, event: RunEnded, run: Progress) -> None:
        for site, reads in self._reads.items() if event.how in ("finished", "exited") else ():
            last = [one for one in reads[-_LEAST_READS:] if one[0] >= _FIRST]
            lost = all(read.nats < _NOTHING and read.weight >= _LEAST_WEIGHT for _, read in last)
            if lost and len(last) == _LEAST_READS and reads[-1][0] >= _LEAST_STEPS:
                self._found(site, last, run)

    def _found(self, site: Site | None, last: list[tuple[int, DivergenceRead]], run: Progress) -> None:
        read = last[-1][1]
        of_size = abs(read.weight / read.values - 1) < _EQUAL
        each = f"the reconstruction is a mean over {read.values} values" if of_size else "against a sum of the errors"
        draft = self.report(
            site,
            f"the KL divergence counts {round(read.weight):,} times, and the latent variables carry nothing",
            run=run,
            label=f"{each}, the divergence a sum" if of_size else f"{round(read.weight):,} times {each}",
            help="add up the reconstruction over the values of a sample, or scale the divergence down",
            cost=f"{read.nats:.2g} nats for each sample are left: all samples have the same distribution",
            confidence=Confidence.HIGH if of_size else Confidence.MEDIUM,
            unit="sampled steps",
        )
        draft.first_step, draft.count, draft.total = last[0][0], len(last), len(last)
