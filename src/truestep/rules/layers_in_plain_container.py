from __future__ import annotations

from collections.abc import Iterator

from truestep.events import (
    Event,
    GradientsTaken,
    ModelCalled,
    OptimizerBuilt,
    PlainTensorKept,
    RunEnded,
    Site,
    TapeRead,
    UnregisteredModuleCalled,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import steps
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import modules
from truestep.syntax import Program, Suspicion

_LEAST = 2


class LayersInPlainContainer(Rule):
    """A model runs layers, or computes with weights, that it does not register: no optimizer trains them.

    What it does
    ------------
    Finds modules that run inside a model's forward and that the loss reaches, with trainable parameters that neither
    the model registers nor any optimizer holds: layers in a list, a dict, a tuple or a closure. Also finds those that
    another method of a model calls, such as ``log_prob``, from a list, a dict or a tuple in its attributes. Finds
    tensors in plain attributes too that keep their values while the model is trained: those that get gradients, and
    those with the name of a weight (``weight``, ``position``, ``token``) that the class draws at random or fills with
    zeros.

    Why it matters
    --------------
    ``model.parameters()`` does not list these layers, so they keep their initial values. They are missing from the
    ``state_dict`` too, and ``model.to(device)``, ``model.eval()`` and ``model.half()`` skip them.

    Example
    -------
    ::

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(64, 64) for _ in range(4)]     # not registered
                self.head = nn.Linear(64, 10)

    Fix
    ---
    Use a container that registers its layers::

        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    Known false alarms
    ------------------
    A pretrained network that is hidden in a list on purpose and used with gradients is reported unless it is frozen
    with ``requires_grad_(False)``; so is a random tensor called ``weight`` or ``position`` that is fixed on purpose.
    Not reported: frozen networks, modules that a call passes to ``forward``, random features, points with derivatives,
    teachers without gradients, tied layers that another model or an optimizer holds, layers that a method calls and
    that move, are loaded, or get an optimizer later, and models without parameters in any optimizer.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleDict.html
    """

    id = "layers-in-plain-container"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (UnregisteredModuleCalled, PlainTensorKept, ModelCalled, TapeRead)
    needs = (ModelCalled, TapeRead, OptimizerBuilt, steps(2))
    explains = ("parameters-not-optimized",)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return modules.layers_in_plain_container(program)

    def __init__(self) -> None:
        super().__init__()
        self._reached: set[int] = set()
        self._calls: dict[tuple[int, ...], int] = {}
        self._layers: dict[Site | None, dict[tuple[int, ...], UnregisteredModuleCalled]] = {}
        self._reported: set[Site | None] = set()
        self._by_method: dict[tuple[int, ...], UnregisteredModuleCalled] = {}
        """Parameters of layers that methods other than `forward` call; an optimizer can be built for them later."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ModelCalled():
                self._reported.clear()
            case TapeRead():
                self._reached.update(event.reached)
            case UnregisteredModuleCalled(fresh=False):
                self._calls[event.parameters] = self._calls.get(event.parameters, 0) + 1
                if event.by_method:
                    self._by_method[event.parameters] = event
                elif self._calls[event.parameters] >= _LEAST and self._astray(event, run):
                    self._found(event, run)
            case PlainTensorKept(gradient=True) if GradientsTaken in run.met:
                pass  # it may be the points of a differential equation
            case PlainTensorKept() if self._is_trained(event.model, run):
                self._tensor(event, run)

    def _is_trained(self, model: int, run: Progress) -> bool:
        met = run.models.get(model)
        return met is not None and any(run.held_by.get(p) for p in met.parameters)

    def _tensor(self, event: PlainTensorKept, run: Progress) -> None:
        """Report a tensor that was to be a parameter."""
        name, model = f"self.{event.name}", run.models[event.model]
        kept = "gets gradients, and is in no optimizer" if event.gradient else "is neither trained nor saved"
        self.report(
            event.site or model.site,
            f"`{name}` of `{event.kind}` is a plain tensor: it {kept}",
            run=run,
            label="not registered",
            related=(Mark(model.site, f"`{run.model_name(event.model)}` is called here"),)
            if model.site and event.site
            else (),
            help=f"make `{name}` an `nn.Parameter`, or a buffer if it is fixed on purpose",
            confidence=Confidence.HIGH if event.gradient else Confidence.MEDIUM,
            cost="it kept its first values while the model was trained",
            unit="sampled steps",
            key=(event.model, event.kind, event.name.partition("[")[0]),
        )

    def _astray(self, event: UnregisteredModuleCalled, run: Progress) -> bool:
        """Return True if the layer gets gradients but no updates while the model around it is trained."""
        own = set(event.parameters) if event.by_method else set()
        owned = {p for model in run.models.values() for p in model.parameters if not own.issuperset(model.parameters)}
        return (
            self._is_trained(event.model, run)
            and any(p in self._reached for p in event.parameters)
            and not any(run.held_by.get(p) or p in owned for p in event.parameters)
        )

    def ended(self, event: RunEnded, run: Progress) -> None:
        """Judge the layers that methods call: nothing has held, moved or loaded them in the whole run."""
        self._reported.clear()
        for parameters, call in self._by_method.items():
            kept = run.weights.random.intersection(parameters) and run.weights.moved.isdisjoint(parameters)
            if kept and self._calls[parameters] >= _LEAST and self._astray(call, run):
                self._found(call, run)
        for site in {call.site for call in self._by_method.values()} & self._drafts.keys():
            self._drafts[site].count = sum(
                self._calls[parameters] for parameters, call in self._by_method.items() if call.site == site
            )

    def _found(self, event: UnregisteredModuleCalled, run: Progress) -> None:
        layers = self._layers.setdefault(event.site, {})
        layers.setdefault(event.parameters, event)
        names = [layer.name for layer in layers.values() if layer.name]
        what = ", ".join(f"`{name}`" for name in names[:3]) or f"a {event.kind}"
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        label = f"{what}{more}: {sum(len(p) for p in layers)} parameters, registered nowhere"
        if event.site in self._reported:
            draft = self._drafts[event.site]
        else:
            model = run.models[event.model]
            draft = self.report(
                event.site,
                f"`{run.model_name(event.model)}` runs layers that it does not register",
                run=run,
                label=label,
                related=(Mark(model.site, f"`{run.model_name(event.model)}` is called here"),)
                if model.site and not event.by_method
                else (),
                help=_help(event.name),
                unit="forward calls",
            )
        self._reported.add(event.site)
        draft.primary = Mark(event.site, label)
        draft.cost = f"{sum(len(p) for p in layers)} parameters got gradients and are in no optimizer"


def _help(name: str) -> str:
    """Return the help with the names of the model: ``layers[0]`` is held by ``self.layers``."""
    holder, bracket, key = name.partition("[")
    container = "nn.ModuleDict" if key[:1] in ("'", '"') else "nn.ModuleList"
    return f"make `self.{holder}` an `{container}`" if bracket and holder else "assign the layers to the model itself"
