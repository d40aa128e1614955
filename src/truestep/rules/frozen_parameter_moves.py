from __future__ import annotations

from truestep.events import Event, FrozenStepped
from truestep.findings import Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_LOOKS = 2


class FrozenParameterMoves(Rule):
    """Optimizer steps move frozen parameters.

    What it does
    ------------
    At sampled steps, compares the values before and after the step of parameters that an optimizer holds and that do
    not require gradients. Reports parameters that moved in two of these steps: on a gradient that an earlier step had
    already used, on a gradient of zeros, or without a gradient, by the optimizer's own decay.

    Why it matters
    --------------
    ``requires_grad_(False)`` stops new gradients. It neither removes the parameter from the optimizer nor clears the
    last gradient, so every step applies that gradient again. In the proof, a body frozen after a first task is ruined,
    and the accuracy of the first task falls to that of guessing. With ``zero_grad(set_to_none=False)`` the gradient is
    zero, but weight decay and momentum still move the parameter.

    Example
    -------
    ::

        for p in model.body.parameters():
            p.requires_grad_(False)
        for x, y in loader:
            model.head.zero_grad()      # the body keeps its last gradient
            criterion(model(x), y).backward()
            optimizer.step()            # and moves by it in every step

    Fix
    ---
    Clear the gradient when freezing a parameter; optimizers skip parameters without a gradient::

        for p in model.body.parameters():
            p.requires_grad_(False)
            p.grad = None

    Known false alarms
    ------------------
    None known. Not reported: copies that a script moves outside of an optimizer step (averages, momentum encoders,
    target networks), parameters frozen between a backward pass and its step (as for the other network of a GAN),
    gradients set by hand (evolution strategies), and optimizers that hold only frozen parameters.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    id = "frozen-parameter-moves"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (FrozenStepped,)
    needs = (FrozenStepped,)

    def __init__(self) -> None:
        super().__init__()
        self._looks: dict[int, int] = {}
        self._moved: dict[tuple[int, int], int] = {}
        """Optimizer and parameter to the number of sampled steps in which it moved while frozen."""

    def suspected(self) -> bool:
        return super().suspected() or bool(self._moved)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, FrozenStepped):
            return
        number = event.optimizer
        self._looks[number] = self._looks.get(number, 0) + 1
        for parameter in (*event.used, *event.zero, *event.bare):
            self._moved[number, parameter] = self._moved.get((number, parameter), 0) + 1
        kinds = ("used", event.used), ("zero", event.zero), ("bare", event.bare)
        for kind, moving in kinds:
            again = tuple(p for p in moving if self._moved[number, p] >= _LEAST_LOOKS)
            if again:
                self._found(event, kind, again, run)
                return

    def _found(self, event: FrozenStepped, kind: str, moving: tuple[int, ...], run: Progress) -> None:
        name = run.optimizer_name(event.optimizer)
        built = run.optimizers.get(event.optimizer)
        by = {
            "used": "with a gradient from before they were frozen",
            "zero": "with a gradient of zeros: by weight decay or momentum",
            "bare": "without a gradient: by the optimizer's own decay",
        }
        draft = self.report(
            event.site,
            f"`{name}` moves frozen parameters",
            run=run,
            label=f"moves {run.parameter_names(moving)} {by[kind]}",
            related=(Mark(built.site, f"`{name}` holds them"),) if built is not None and built.site else (),
            help="set `parameter.grad = None` after `requires_grad_(False)`"
            if kind != "bare"
            else f"pass only trainable parameters to `{name}`",
            severity=Severity.ERROR if kind == "used" else Severity.WARNING,
            unit="sampled steps",
            key=(event.optimizer, event.site),
        )
        draft.total = self._looks[event.optimizer]
        draft.count = min(draft.total, max(self._moved[event.optimizer, p] for p in moving))
        draft.cost = f"values before and after {draft.count} single steps differ"
