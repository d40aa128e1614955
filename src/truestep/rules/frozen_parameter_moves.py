from __future__ import annotations

from truestep.events import Event, FrozenStepped
from truestep.findings import Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_LOOKS = 2


class FrozenParameterMoves(Rule):
    """Steps of an optimizer move parameters that are frozen.

    What it does
    ------------
    Compares values right before a step with those right after it, at sampled steps, for parameters that an optimizer
    holds and that do not require gradients. Reports those that moved at two of these steps, on a gradient that earlier
    steps had used already, on a gradient of zeros, or without one by a decay of the optimizer's own.

    Why it matters
    --------------
    ``requires_grad_(False)`` ends new gradients; it does not take the parameter out of the optimizer, and it leaves
    the last gradient where it is. If that is not removed, every step takes it again: in the proof a body that was
    frozen after a first task is ruined, and the first task falls to guessing. With ``zero_grad(set_to_none=False)`` the
    gradient is zero, and weight decay and momentum still move the parameter.

    Example
    -------
    ::

        for p in model.body.parameters():
            p.requires_grad_(False)
        for x, y in loader:
            model.head.zero_grad()      # the body keeps its last gradient
            criterion(model(x), y).backward()
            optimizer.step()            # and is moved by it again and again

    Fix
    ---
    Remove the gradient where the parameter is frozen; optimizers pass over parameters without one::

        for p in model.body.parameters():
            p.requires_grad_(False)
            p.grad = None

    Known false alarms
    ------------------
    None known. Copies that a script moves by itself (averages, momentum encoders, target networks) are quiet, because
    only what changes within a step of an optimizer counts. So are parameters frozen between a backward pass and its
    step (as for the other network of a GAN), gradients set by hand (evolution strategies), and optimizers that hold
    nothing but frozen parameters.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    id = "frozen-parameter-moves"
    since = "0.1"
    severity = Severity.ERROR
    watches = (FrozenStepped,)
    needs = (FrozenStepped,)

    def __init__(self) -> None:
        super().__init__()
        self._looks: dict[int, int] = {}
        self._moved: dict[tuple[int, int], int] = {}
        """Optimizer and parameter to how often it was seen to move while frozen."""

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
            "bare": "without a gradient: by a decay of its own",
        }
        draft = self.report(
            event.site,
            f"`{name}` moves parameters that are frozen",
            run=run,
            label=f"moves {run.parameter_names(moving)} {by[kind]}",
            related=(Mark(built.site, f"`{name}` holds them"),) if built is not None and built.site else (),
            help="set `parameter.grad = None` where `requires_grad_(False)` is called"
            if kind != "bare"
            else f"give `{name}` trainable parameters only",
            severity=Severity.ERROR if kind == "used" else Severity.WARNING,
            unit="sampled steps",
            key=(event.optimizer, event.site),
        )
        draft.total = self._looks[event.optimizer]
        draft.count = min(draft.total, max(self._moved[event.optimizer, p] for p in moving))
        draft.cost = f"values compared before and after {draft.count} single steps differ"
