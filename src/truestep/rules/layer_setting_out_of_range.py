from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, LayerSettingRead, ModelMet
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import layers
from truestep.syntax import Program, Suspicion


class LayerSettingOutOfRange(Rule):
    """A layer has a setting that no training uses: an argument at the wrong place, or meant for another framework.

    What it does
    ------------
    Reads the settings of the layers of each model at its first call. Reports a normalisation with an ``eps`` of 0.1 or
    more, or with a ``momentum`` below 0, above 1, or from 0.99 to below 1; dropout with ``p`` of 1; and a leaky ReLU
    with a slope of 1 or more.

    Why it matters
    --------------
    Positional arguments are easily shifted by one, and each of these runs without an error. The second argument of
    ``BatchNorm2d`` is ``eps``: with the number of channels in its place, the layer divides by the root of the variance
    *plus 64* and squashes its output towards zero. ``LeakyReLU(True)`` sets a slope of 1 and no ``inplace``: the layer
    returns its input, and the network is linear. ``Dropout(True)`` returns zeros. A ``momentum`` of 0.99 is meant for
    frameworks where it is the share of the *old* statistics; in torch it is the share of the new ones, and evaluations
    use the statistics of the last batch.

    Example
    -------
    ::

        self.norm = nn.BatchNorm2d(64, 64)      # eps = 64
        self.act = nn.LeakyReLU(True)           # negative_slope = 1

    Fix
    ---
    Pass settings by name::

        self.norm = nn.BatchNorm2d(64)
        self.act = nn.LeakyReLU(0.01, inplace=True)

    Known false alarms
    ------------------
    None known. Not reported: an ``eps`` up to 0.1, ``momentum=None`` (the mean of all batches), 0 and 1, which are used
    on purpose, and layers that are not torch's own.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.LeakyReLU.html
    """

    id = "layer-setting-out-of-range"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (LayerSettingRead,)
    explains = ("loss-at-chance",)
    needs = (ModelMet,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return layers.layer_setting_out_of_range(program)

    def observe(self, event: Event, run: Progress) -> None:
        assert isinstance(event, LayerSettingRead)
        model = run.models.get(event.model)
        name = run.model_name(event.model)
        usual, effect, help = _ADVICE[event.setting]
        related = (Mark(model.site, f"`{name}` is called here"),) if model is not None and model.site else ()
        draft = self.report(
            event.site,
            f"`{event.setting}` of a {event.kind} is {event.value}",
            run=run,
            label=f"`{name}.{event.layer}`: {effect}" if event.layer else effect,
            related=() if model is not None and model.site == event.site else related,
            help=help,
            cost=f"usual values are {usual}",
            confidence=Confidence.MEDIUM if event.setting == "momentum" and event.value.startswith("0.") else None,
            unit="layers",
            key=(event.site, event.setting, event.value),
        )
        draft.total = draft.count


_ADVICE = {
    "eps": (
        "1e-5 to 1e-3",
        "it is added to the variance, so the output is squashed towards zero",
        "leave `eps` out, and pass other settings by name",
    ),
    "momentum": (
        "0.01 to 0.1",
        "the share of the new batch in the running statistics",
        "pass `momentum=0.1` or smaller, or leave it out",
    ),
    "p": (
        "0.1 to 0.5",
        "all values are dropped, and the layer returns zeros",
        "pass the share of values to drop as `p`",
    ),
    "negative_slope": (
        "0.01 to 0.2",
        "the layer does not bend its input",
        "pass `negative_slope` below 1, and `inplace` by name",
    ),
}
"""For each setting: its usual values, the effect, and the advice."""
