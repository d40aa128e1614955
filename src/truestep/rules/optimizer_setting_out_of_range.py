from __future__ import annotations

import re
from collections.abc import Iterator

from truestep.events import Event, LearningRateRead, LossRead, OptimizerBuilt, OptimizerStepped, RunEnded, Site
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import optimizers
from truestep.syntax import Program, Suspicion

Settings = tuple[tuple[str, float], ...]

_MOST = 64
"""Settings of a line that are kept."""
_DECAY, _OF_RATE = 0.5, 0.05
"""Weight decay that can remove the weights, and such a weight decay of AdamW when multiplied by the learning rate."""
_LEAST_PARAMETERS = 3
"""Two layers: a linear model with a strong penalty is ridge regression."""
_SAME = 0.95
"""Least loss, relative to the first, from which on it has not fallen."""
_LEAST_STEPS = 50
_BIAS = re.compile(r"bias|beta|norm|(^|[._`])b\d*`?$", re.IGNORECASE)
_LEAST_BIASES = 2


class OptimizerSettingOutOfRange(Rule):
    """A setting of an optimizer is out of range: betas that are exchanged, or a weight decay as the momentum.

    What it does
    ------------
    Reads the settings of each optimizer of torch at its first step. Reports betas of which the first averages over more
    than four times as many steps as the second, a momentum of 1 or more, an ``alpha`` of ``RMSprop`` of 1 or more, and
    a momentum or an ``alpha`` of at most 0.005 without a weight decay; also a weight decay of all biases and other
    parameters of one dimension, if matrices have none. If no loss falls, reports a weight decay of 0.5 or more; that of
    ``AdamW`` if it is 0.05 or more when multiplied by the learning rate. The syntax shows settings that a file writes
    out, and groups by the number of dimensions.

    Why it matters
    --------------
    Positional arguments are easily shifted by one, and each of these runs without an error. The third argument of
    ``SGD`` is the momentum: ``SGD(params, 0.01, 1e-4)`` trains without momentum and without weight decay. In the proof,
    its accuracy is 0.80 instead of 0.96. With exchanged betas, Adam divides an average over 1,000 steps by the root of
    one over ten: 0.86 to 0.94 instead of 0.97, by the learning rate. A momentum of 0.9 that is given as the weight
    decay removes all weights, and the accuracy is 0.11. With exchanged groups, a weight decay of 1 on the biases alone,
    the error of a noisy regression is 1.48 instead of 1.00 on new samples.

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
    A search that tries such values only. Not reported: a momentum of 0, a small one beside a weight decay, betas that
    are close to each other, settings that change during the run, lines that build optimizers with usual values too,
    weight decays of gates and other parameters of one dimension in models with few biases, or beside penalties or
    weights without a scale (a loop over the parameters that computes with them, a parametrization),
    optimizers without a step, and optimizers that are not torch's own.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html
    """

    id = "optimizer-setting-out-of-range"
    since = "0.1"
    severity = Severity.ERROR
    account = "rate"
    watches = (OptimizerBuilt, LearningRateRead, OptimizerStepped, LossRead)
    needs = (OptimizerBuilt, OptimizerStepped)
    explains = ("update-exceeds-weights", "loss-at-chance", "nan-or-inf")

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[int, OptimizerBuilt] = {}
        """Optimizers before their first step."""
        self._settings: dict[int, Settings] = {}
        """Their latest settings."""
        self._lines: dict[Site, list[Settings]] = {}
        """Line to the settings that it builds optimizers with."""
        self._found: dict[int, Site | None] = {}
        """Optimizers with a finding, each with the line of it."""
        self._decaying: dict[int, OptimizerBuilt] = {}
        """Optimizers with a weight decay that may remove all weights."""
        self._losses: dict[Site | None, tuple[float, float]] = {}
        """Line of a backward pass to the first and the least value of its loss."""
        self._decays: dict[Site | None, set[float]] = {}
        """Line to the weight decays that it builds optimizers with."""

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return optimizers.optimizer_setting_out_of_range(program)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case OptimizerBuilt():
                self._waiting[event.optimizer], self._settings[event.optimizer] = event, event.settings
                self._decays.setdefault(event.site, set()).add(event.weight_decay)
                if event.site is not None:
                    self._built(event.site, event)
            case LearningRateRead():
                self._read(event.optimizer, event.settings)
            case OptimizerStepped() if event.optimizer in self._waiting:
                self._judge(self._waiting.pop(event.optimizer), run)
            case LossRead():
                first, least = self._losses.get(event.site, (event.value, event.value))
                self._losses[event.site] = first, min(least, event.value)

    def ended(self, event: RunEnded, run: Progress) -> None:
        alike = all(least >= _SAME * first > 0 for first, least in self._losses.values())
        if not self._losses or not alike or run.step < _LEAST_STEPS:
            return
        for built in self._decaying.values():
            if len(self._decays[built.site]) > 1:  # a line that tries several
                continue
            self.report(
                built.site,
                f"the weight decay of {built.kind} is {built.weight_decay:g}, and the loss has not fallen",
                run=run,
                label="a momentum as the weight decay" if built.weight_decay < 1 else "removes the weights",
                help="use a weight decay from 1e-5 to 0.1",
                unit="optimizers",
                confidence=Confidence.MEDIUM,
            )

    def _exchanged(self, built: OptimizerBuilt, run: Progress) -> None:
        """Report a weight decay of all parameters but matrices."""
        decay = built.decay_of_vectors
        names = [run.parameter_names((number,)) for number in built.parameters]
        biases = not names or sum(map(bool, map(_BIAS.search, names))) >= _LEAST_BIASES
        by_hand = built.site is not None and optimizers.decays_by_hand(built.site.path)
        rescaled = any("parametrizations." in name for name in names)
        if decay and self._decays[built.site] <= {0.0, decay} and biases and not by_hand and not rescaled:
            self.report(
                built.site,
                f"biases have a weight decay of {decay:g}, and matrices have none",
                run=run,
                label="the groups are exchanged",
                help="give the weight decay to the parameters with two or more dimensions",
                unit="optimizers",
                confidence=Confidence.MEDIUM,
                key=("groups", built.site),
            )

    def _built(self, site: Site, event: OptimizerBuilt) -> None:
        """Note the settings of a line, and withdraw its finding if it tries several."""
        known = self._lines.setdefault(site, [])
        if event.settings not in known and len(known) < _MOST:
            known.append(event.settings)
        self._withdraw(
            {number for number, line in self._found.items() if line == site and self._is_tried(number, site)}
        )

    def _read(self, optimizer: int, settings: Settings) -> None:
        """Withdraw the finding of an optimizer with settings that change: a schedule does that."""
        if settings != self._settings.get(optimizer, settings):
            self._settings[optimizer] = settings
            self._withdraw({optimizer} & self._found.keys())

    def _is_tried(self, optimizer: int, site: Site | None) -> bool:
        """Return True if the line of an optimizer also builds one with another, usual value of the same setting."""
        own = dict(self._settings[optimizer])
        lines = self._lines.get(site, []) if site is not None else []
        return any(optimizers.is_usual(dict(one), own) for one in lines)

    def _withdraw(self, numbers: set[int]) -> None:
        for number in numbers:
            self.withdraw(self._found.pop(number))

    def _judge(self, built: OptimizerBuilt, run: Progress) -> None:
        self._exchanged(built, run)
        decay = built.weight_decay * built.lr / _OF_RATE if built.kind == "AdamW" else built.weight_decay / _DECAY
        if decay >= 1 and built.settings and len(built.parameters) >= _LEAST_PARAMETERS:
            self._decaying[built.optimizer] = built
        found = optimizers.out_of_range(dict(self._settings[built.optimizer]), built.weight_decay)
        if found is None or self._is_tried(built.optimizer, built.site):
            return
        self._found[built.optimizer] = built.site
        self.report(
            built.site,
            found.message.format(kind=built.kind),
            run=run,
            label=found.label,
            help=found.help,
            cost=f"usual values are {found.usual}",
            unit="optimizers",
        )
