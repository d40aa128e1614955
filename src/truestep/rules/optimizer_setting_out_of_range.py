from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, OptimizerBuilt
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import optimizers
from truestep.syntax import Program, Suspicion


class OptimizerSettingOutOfRange(Rule):
    """A setting of an optimizer is out of range: betas that are exchanged, or a weight decay as the momentum.

    What it does
    ------------
    Reads the settings of each optimizer of torch. Reports betas of which the first is larger than the second, a
    momentum of 1 or more, or of at most 0.005 without a weight decay, and an ``alpha`` of ``RMSprop`` of 1 or more, or
    of at most 0.005.

    Why it matters
    --------------
    Positional arguments are easily shifted by one, and each of these runs without an error. The third argument of
    ``SGD`` is the momentum: ``SGD(params, 0.01, 1e-4)`` trains without momentum and without weight decay. In the proof,
    its accuracy is 0.80 instead of 0.96. With exchanged betas, Adam divides an average over 1,000 steps by the root of
    one over ten: 0.86 to 0.94 instead of 0.97, by the learning rate.

    Example
    -------
    ::

        optimizer = torch.optim.SGD(model.parameters(), 0.01, 1e-4)             # momentum = 1e-4
        optimizer = torch.optim.Adam(model.parameters(), betas=(0.999, 0.9))    # exchanged

    Fix
    ---
    Pass settings by name::

        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    Known false alarms
    ------------------
    A search over settings that tries such values. Not reported: a momentum of 0, a small one beside a weight decay, and
    optimizers that are not torch's own.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html
    """

    id = "optimizer-setting-out-of-range"
    since = "0.1"
    severity = Severity.ERROR
    account = "rate"
    watches = (OptimizerBuilt,)
    needs = (OptimizerBuilt,)
    explains = ("update-exceeds-weights", "loss-at-chance")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return optimizers.optimizer_setting_out_of_range(program)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, OptimizerBuilt):
            return
        found = optimizers.out_of_range(dict(event.settings), event.weight_decay)
        if found is not None:
            self.report(
                event.site,
                found.message.format(kind=event.kind),
                run=run,
                label=found.label,
                help=found.help,
                cost=f"usual values are {found.usual}",
                unit="optimizers",
            )
