"""Evidence: parameters that a load skipped although the state dict has them, or the load matched no parameter."""

from __future__ import annotations

from truestep.events import Event, ModelCalled, OptimizerStepped, RunEnded, StateLoaded
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule


class LoadNotStrictSilently(Rule):
    """``load_state_dict(strict=False)`` skipped all or most weights, and its result was ignored.

    What it does
    ------------
    Checks loads with ``strict=False`` and a discarded result. Reports a load if it loaded no parameter of the model, or
    if it skipped most of them although the state dict has them, in the same shapes, under names with another prefix
    (``module.``, ``_orig_mod.``, ``model.``).

    Why it matters
    --------------
    The model keeps its random weights, and training or testing continues with them. In the proof, a pretrained model is
    fine-tuned on 100 samples: the test accuracy is 0.37 if the keys begin with ``module.``, and 0.79 if the weights are
    loaded.

    Example
    -------
    ::

        torch.save(torch.compile(model).state_dict(), "model.pt")       # the keys begin with _orig_mod.
        ...
        model.load_state_dict(torch.load("model.pt"), strict=False)     # loads nothing

    Fix
    ---
    Make the names match, and let torch report the others::

        state = {k.removeprefix("_orig_mod."): v for k, v in torch.load("model.pt").items()}
        model.load_state_dict(state)

    If keys are missing on purpose, check the result::

        missing, unexpected = model.load_state_dict(state, strict=False)
        assert not unexpected

    Known false alarms
    ------------------
    None known. Not reported: a backbone without its head, adapters, loads by a library, a result that is printed or
    assigned, one state dict or one line that loads several modules, and a module that is loaded again before it is
    used.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
    """

    id = "load-not-strict-silently"
    since = "0.1"
    severity = Severity.ERROR
    account = "state"
    watches = (StateLoaded, ModelCalled, OptimizerStepped)
    needs = (StateLoaded,)
    explains = ("untrained-weights",)

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[StateLoaded] = []
        self._served: set[object] = set()
        """Lines and state dicts that loaded parameters of at least one module."""
        self._reported: dict[object, StateLoaded] = {}

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, StateLoaded):
            if self._waiting:
                self._judge(run)
            return
        if event.unread and _passed_by(event):
            self._waiting.append(event)
            return
        self._served |= {event.site, event.state or event.site}
        self._waiting = [load for load in self._waiting if load.module != event.module]
        for key, load in list(self._reported.items()):
            if load.module == event.module or self._spared(load):
                self.withdraw(key)

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how == "finished":
            self._judge(run)

    def _spared(self, load: StateLoaded) -> bool:
        """Return True if the line or the state dict loaded another module and has no parameter for this one."""
        return not load.matched and bool({load.site, load.state or load.site} & self._served)

    def _judge(self, run: Progress) -> None:
        waiting, self._waiting = self._waiting, []
        for load in waiting:
            if self._spared(load):
                continue
            self._reported[load.site] = load
            name = f"`{run.model_name(load.model)}`" if load.model else "the model"
            all_of_them = not load.matched
            self.report(
                load.site,
                f"no weight of {name} was loaded"
                if all_of_them
                else f"{load.dropped} of {load.dropped + load.matched} weights of {name} were not loaded",
                run=run,
                label="`strict=False` skipped them, and the result was ignored",
                help=_help(load),
                cost=_cost(load),
                confidence=Confidence.HIGH if load.found else Confidence.MEDIUM,
                unit="loads",
            )


def _passed_by(load: StateLoaded) -> bool:
    """Return True if a load changed no parameter, or skipped most of them because of a prefix in the names."""
    if not load.matched:
        return load.dropped > 0 and (load.offered > 0 or load.found > 0)
    return load.found == load.dropped > load.matched


def _cost(load: StateLoaded) -> str:
    kept = f"{load.dropped} parameters keep their previous values"
    return f"{kept}; the state dict has {load.found} of them" if load.found else f"{kept}; no name matches"


def _help(load: StateLoaded) -> str:
    if load.inner:
        return f'load the dict under the key "{load.inner}" of the state dict'
    if load.added:
        return f"remove `{load.added}` from the keys of the state dict, and load it with strict=True"
    if load.lacking:
        return f"add `{load.lacking}` before the keys of the state dict, and load it with strict=True"
    return "load the state dict with strict=True to see which names differ"
