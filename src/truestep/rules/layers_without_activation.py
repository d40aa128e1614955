from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, LayersJoined, TapeRead
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import layers
from truestep.syntax import Program, Suspicion

_LEAST_STEPS = 20
"""A few steps show how a loop is written, and train nothing."""


class LayersWithoutActivation(Rule):
    """Two linear layers follow one another without an activation, and compute no more than one layer.

    What it does
    ------------
    Follows the operations of a loss on the autograd tape, in the first steps of each backward pass. Reports a linear
    layer or a convolution with a result that goes to the next one through reshaping, dropout, a bias or a batch
    normalisation only. Both layers must belong to the same part of a model or to the same layer of repeated parts,
    both must be trained, and the result must have no other use.

    Why it matters
    --------------
    A linear map of a linear map is a linear map. The second layer costs parameters, memory and time, and the model
    learns no more than with one layer, while its loss falls as far as that allows. In the proof, 32 hidden units
    without an activation classify 49 % of the points of a ring and its inside right, and 98 % with a ReLU.

    Example
    -------
    ::

        def forward(self, x):
            return self.head(self.hidden(x))

    Fix
    ---
    Put an activation between the layers::

        def forward(self, x):
            return self.head(torch.relu(self.hidden(x)))

    Known false alarms
    ------------------
    Deep linear networks as an object of study. Not reported: a bottleneck with fewer units than both ends (low-rank
    factors, LoRA, linear autoencoders, MobileNet's narrow ends), two parts of a model (a projector and a predictor, an
    encoder and a decoder), convolutions in groups and with sides of different lengths, results that are also used
    elsewhere (a residual connection) or in parts (queries and keys), inputs of recurrent layers, and runs of fewer
    than 20 steps.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/nn.html#non-linear-activations-weighted-sum-nonlinearity
    """

    id = "layers-without-activation"
    since = "0.1"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    account = "calls"
    watches = (LayersJoined, TapeRead)
    needs = (TapeRead,)
    explains = ("loss-at-chance",)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return layers.layers_without_activation(program)

    def __init__(self) -> None:
        super().__init__()
        self._joined: dict[int, LayersJoined] = {}
        """The pairs of layers by the first of the two."""

    def unobserved(self, run: Progress) -> str:
        few = f"fewer than {_LEAST_STEPS} optimizer steps"
        return super().unobserved(run) or (few if run.step < _LEAST_STEPS else "")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LayersJoined():
                self._joined[event.first] = event
            case _ if run.step >= _LEAST_STEPS:
                for joined in self._joined.values():
                    self._found(joined, run)
                self._joined.clear()

    def _found(self, event: LayersJoined, run: Progress) -> None:
        first, second = (
            run.parameter_names((number,)).removesuffix(".weight") for number in (event.first, event.second)
        )
        elsewhere = event.first_site is not None and event.first_site != event.site
        draft = self.report(
            event.site,
            f"no activation between `{first}` and `{second}`: they compute one linear layer",
            run=run,
            label=f"runs `{second}` on the {event.width} outputs of `{first}`"
            + (", normalised" if event.normed else ""),
            related=(Mark(event.first_site, f"runs `{first}`"),) if elsewhere else (),
            help=f"put an activation between `{first}` and `{second}`, or replace them by one layer",
            cost="a product of two weights is one weight: the model learns no more than with one of the two layers",
            unit="backward passes",
            key=event.first,
        )
        draft.count, draft.total = 1, None
