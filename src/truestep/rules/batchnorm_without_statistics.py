from __future__ import annotations

from truestep.events import Event, FirstStatisticsUsed, ModelCalled
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import steps
from truestep.rules._rule import Progress, Rule


class BatchnormWithoutStatistics(Rule):
    """A model with changed weights is evaluated with the statistics that its normalisation was built with.

    What it does
    ------------
    Looks at the layers of batch normalisation that run in evaluations. Reports a model with a running mean of 0 and a
    variance of 1 in each channel, although its weights have been written to: it is an average of weights that lacks the
    buffers of the trained model, or it has never run in train mode.

    Why it matters
    --------------
    In eval mode a layer normalises with its running statistics. Those of the start fit no data: the layer normalises
    nothing, and the next layers get inputs of another scale than in training. The average is judged, and saved, far
    below its worth.

    Example
    -------
    ::

        for average, weight in zip(ema.parameters(), model.parameters()):   # no buffers
            average.lerp_(weight, 1 - decay)

    Fix
    ---
    Copy the buffers too, or compute the statistics again::

        for average, buffer in zip(ema.buffers(), model.buffers()):
            average.copy_(buffer)

    Known false alarms
    ------------------
    A layer that is kept in eval mode from the start, as a scale and a shift. Not reported: evaluations before the first
    step, and layers without running statistics.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.swa_utils.update_bn.html
    """

    id = "batchnorm-without-statistics"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (FirstStatisticsUsed,)
    needs = (ModelCalled, steps(1))

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, FirstStatisticsUsed):
            return
        name = run.model_name(event.model)
        copied = event.loop is not None
        self.report(
            event.loop or event.site,
            f"`{name}` is evaluated with statistics of batch normalisation that no batch has changed",
            run=run,
            label="goes over parameters, and leaves the buffers out" if copied else f"`{name}` is evaluated here",
            related=(Mark(event.site, f"`{name}` is evaluated here"),) if copied else (),
            cost=f"the running mean is 0 and the variance 1 in {event.layers} of {event.of} layers",
            help=f"copy the buffers of the trained model to `{name}` too, or compute them with `update_bn`"
            if copied
            else f"run `{name}` in train mode, or compute the statistics with `update_bn`",
            confidence=Confidence.HIGH if event.layers == event.of else Confidence.MEDIUM,
            unit="evaluations",
            key=event.model,
        )
