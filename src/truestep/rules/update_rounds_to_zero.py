from __future__ import annotations

from dataclasses import dataclass

from truestep.events import Event, RunEnded, UpdateRounded
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule

_MOST = 0.1
"""Most elements, as a fraction, that a step may change and still count as rounded away."""
_MOST_KEPT = 0.5
"""Most weights, as a fraction, that may keep their value over 100 steps."""
_FIRST_STEP = 10
_LEAST_LOOKS = 4
_LEAST_LOOKS_OF_WHOLE = 3
"""Least number of sampled steps from step 10 on, during a run and at the end of a finished run."""


@dataclass(slots=True)
class _Looks:
    """Observations of one optimizer at sampled steps."""

    count: int = 0
    worked: bool = False
    """Whether a sampled step changed more than a few values."""
    kept: float = 0.0
    """Fraction of the weights that had the same value after all sampled steps, at the latest one."""
    first_lr: float = 0.0
    steady: bool = True
    """Whether the learning rate was the same at all sampled steps."""
    full: bool = False
    """Whether the learning rate at a sampled step was, or was close to, the initial one of the optimizer."""
    rising: bool = False
    latest: UpdateRounded | None = None
    most: float = 0.0


class UpdateRoundsToZero(Rule):
    """Updates of 16-bit parameters are smaller than their rounding, so the parameters keep their values.

    What it does
    ------------
    Compares, at sampled steps, values of float16 and bfloat16 parameters before and after a step of a torch optimizer.
    Reports optimizers with steps that never changed more than 10 % of the elements with a gradient, nor elements with
    more than 10 % of the gradient. Also reports optimizers with weights of which more than half, with more than half of
    the gradient, have a gradient at all sampled steps, in a common direction, and still the same value after 100 steps
    or more.

    Why it matters
    --------------
    A bfloat16 number has 8 significant bits: near 0.3, updates below 0.001 are rounded away in every step. The loss
    falls a little (small weights do move) and then stays. In the proof, a model that trains in float32 stays at the
    accuracy of its initial values. Torch optimizers keep no second copy of the weights in higher precision.

    Example
    -------
    ::

        model = model.to(torch.bfloat16)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)

    Fix
    ---
    Keep the parameters in float32 and compute in 16 bits::

        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
        with torch.autocast("cuda", torch.bfloat16):
            loss = criterion(model(x), y)

    Known false alarms
    ------------------
    Further training of a trained model with all samples in each step. Only optimizers of `torch.optim` are judged, not
    those with stochastic rounding, compensated sums or float32 copies of the weights. Not reported: a learning rate
    that is still rising (warm-up), and one that has fallen after steps that changed the weights. Elements without a
    gradient do not count, nor those with a learning rate of zero, nor weights that stay where their gradients are only
    noise.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/amp.html
    - https://arxiv.org/abs/2010.06192
    """

    id = "update-rounds-to-zero"
    since = "0.1"
    severity = Severity.ERROR
    account = "steps"
    watches = (UpdateRounded,)
    needs = (UpdateRounded,)
    explains = (
        "loss-at-chance",
        "loss-never-changes",
    )

    def __init__(self) -> None:
        super().__init__()
        self._looks: dict[int, _Looks] = {}

    def suspected(self) -> bool:
        return super().suspected() or any(not looks.worked for looks in self._looks.values())

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, UpdateRounded):
            return
        looks = self._looks.setdefault(event.optimizer, _Looks(first_lr=event.lr))
        looks.worked |= event.changed >= _MOST
        looks.kept = event.kept
        looks.count += run.step >= _FIRST_STEP
        looks.steady &= event.lr == looks.first_lr
        looks.most = max(looks.most, event.changed)
        built = run.optimizers.get(event.optimizer)
        looks.full |= built is not None and event.lr >= 0.9 * built.lr > 0
        looks.rising = looks.latest is not None and event.lr > looks.latest.lr
        looks.latest = event
        if looks.worked and looks.kept <= _MOST_KEPT:
            self.withdraw(event.optimizer)
        elif looks.count >= _LEAST_LOOKS:
            self._judge(event.optimizer, looks, run)

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how != "finished":
            return
        for number, looks in self._looks.items():
            if not looks.worked and looks.count >= _LEAST_LOOKS_OF_WHOLE:
                self._judge(number, looks, run)

    def _judge(self, number: int, looks: _Looks, run: Progress) -> None:
        latest = looks.latest
        if latest is None or looks.rising or not (looks.steady or looks.full):
            return  # the learning rate may still rise
        which = "most updates" if looks.worked else "nearly every update"
        verb = "are" if looks.worked else "is"
        draft = self._drafts.get(number) or self.report(
            latest.site,
            f"{which} of `{run.optimizer_name(number)}` {verb} rounded away",
            run=run,
            label=f"parameters of {latest.dtype} keep their values",
            help="keep the parameters in float32, and run the forward pass under `torch.autocast`",
            unit="sampled steps",
            key=number,
        )
        draft.count = draft.total = looks.count
        draft.cost = f"of the elements with a gradient, at most {looks.most:.2%} changed in any sampled step"
        if looks.worked:
            draft.cost = f"{looks.kept:.0%} of the weights with a gradient kept their value over 100 steps or more"
