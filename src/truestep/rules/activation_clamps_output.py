from __future__ import annotations

import math
from collections.abc import Iterator

from truestep.events import Event, LossComputed, RatesRead
from truestep.findings import Severity
from truestep.rules._conditions import loss_of
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import losses
from truestep.syntax import Program, Suspicion

_NAMES = {
    "ReluBackward0": "ReLU",
    "SoftplusBackward0": "softplus",
    "SigmoidBackward0": "sigmoid",
    "SoftmaxBackward0": "softmax",
    "TanhBackward0": "tanh",
}
_OF_RATES = {
    "ReluBackward0": "a ReLU",
    "SoftplusBackward0": "a softplus",
    "SigmoidBackward0": "a sigmoid",
    "ExpBackward0": "an exponential",
}
_REGRESSION = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_LOSSES = loss_of(
    "cross_entropy",
    "binary_cross_entropy_with_logits",
    *_REGRESSION,
    named="loss on logits or on values",
)
_SHARE = 20
"""From this percentage on, targets are not out of range by noise or by chance."""


class ActivationClampsOutput(Rule):
    """The last layer is an activation that cannot output the values that the loss requires.

    What it does
    ------------
    Finds training losses with an input that comes directly from an activation with a limited range:

    - ``cross_entropy`` on the outputs of a ReLU, a sigmoid or a tanh;
    - ``binary_cross_entropy_with_logits`` on the outputs of a ReLU, a softplus or a tanh;
    - ``poisson_nll_loss`` with ``log_input=True``, its default, on the outputs of a ReLU, a softplus, a sigmoid or an
      ``exp``, if some counts are zero, at two sampled steps: no rate below 1 can be predicted;
    - a regression loss (``mse_loss`` and similar) where, at sampled steps, at least 20 % of the targets, or of those in
      one of a few columns, are clearly outside the range of the ReLU, softplus, sigmoid, softmax or tanh.

    Why it matters
    --------------
    Values outside the range are never predicted. Where a ReLU outputs 0 it passes no gradient, so a class with output 0
    for all samples is lost for good. In the proof, a classifier of ten classes with a final ReLU gets 71 % of held-out
    points right instead of 98 %. A regression of standardised targets behind a ReLU explains 45 % of their variance
    instead of 84 %. A sigmoid or tanh before cross entropy keeps the order of the classes but not the probabilities:
    the log loss of ten classes stays at 1.50 or 0.85 instead of 0.06.

    Example
    -------
    ::

        model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10), nn.ReLU())
        loss = F.cross_entropy(model(x), y)         # no logit is ever negative

    Fix
    ---
    End with a linear layer, or scale the targets into the range of the activation::

        model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))

    Known false alarms
    ------------------
    A regression that should learn only the targets within the range: clamp the targets instead. Not reported:
    activations that are pooled, scaled or shifted before the loss (the averaged ReLU of SqueezeNet, ``10 * tanh(x)``),
    losses with ``reduction="none"``, which may be masked, targets out of range by noise only, and losses that do not
    track gradients.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    """

    id = "activation-clamps-output"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    watches = (LossComputed, RatesRead)
    needs = (LossComputed, _LOSSES)
    explains = ("loss-at-chance", "loss-never-changes", "parameters-without-effect")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return losses.activation_clamps_output(program)

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, RatesRead):
            self._of_rates(event, run)
        if not isinstance(event, LossComputed) or not event.grad or event.made_by not in _NAMES:
            return
        name, severity = _NAMES[event.made_by], Severity.ERROR
        if event.kind == "cross_entropy":
            limit = _of_classes(event.made_by, event.classes)
            message = f"cross entropy got the outputs of a {name} where it expects logits"
            severity = Severity.ERROR if event.made_by == "ReluBackward0" else Severity.WARNING
        elif event.kind == "binary_cross_entropy_with_logits":
            limit = _of_two(event.made_by)
            message = f"binary cross entropy with logits got the outputs of a {name} where it expects logits"
        elif event.kind in _REGRESSION and event.reduction != "none" and (event.beyond or 0) >= _SHARE:
            limit = f"{event.beyond} % of the targets are outside the range of a {name} (at a sampled step)"
            message = f"a regression compares the outputs of a {name} with targets that it cannot reach"
        else:
            return
        key = (event.site, event.made_by)
        if not limit or not self.seen_before(key, run):
            return
        help = f"remove the {name} before the loss"
        if event.kind in _REGRESSION:
            help += ", or scale the targets into its range"
        self.report(
            event.site,
            message,
            run=run,
            label=f"its input comes from a {name}",
            cost=limit,
            help=help,
            severity=severity,
            unit="sampled losses" if event.kind in _REGRESSION else "losses",
            key=key,
        )

    def _of_rates(self, event: RatesRead, run: Progress) -> None:
        name = _OF_RATES.get(event.made_by)
        if name is None or not self.seen_before(("rates", event.site), run):
            return
        self.report(
            event.site,
            f"a Poisson loss got the outputs of {name} where it expects logarithms of rates",
            run=run,
            label=f"its rates are exponentials of the outputs of {name}",
            cost="no rate below 1 can be predicted, and the outputs are not the rates that they look like",
            help="pass `log_input=False`, or the output of the last linear layer",
            unit="sampled losses",
            key=("rates", event.site),
        )


def _of_classes(made_by: str, classes: int) -> str:
    """Return the effect of such logits on the classes; empty if it is unknown.

    >>> _of_classes("SigmoidBackward0", 10)
    'no class of 10 ever gets more than 23 % of the probability'
    """
    if classes < 2:
        return ""
    if made_by == "ReluBackward0":
        return "where the ReLU outputs 0 it passes no gradient, and the class is not learned from that sample"
    span = {"SigmoidBackward0": 1.0, "TanhBackward0": 2.0}.get(made_by)
    if span is None:
        return ""
    most = 1 / (1 + (classes - 1) * math.exp(-span))
    return f"no class of {classes} ever gets more than {100 * most:.0f} % of the probability"


def _of_two(made_by: str) -> str:
    if made_by in ("ReluBackward0", "SoftplusBackward0"):
        return "no label ever gets a probability below 50 %, and before weights a label of 0 costs at least 0.69"
    return "no label ever gets a probability outside 27 to 73 %" if made_by == "TanhBackward0" else ""
