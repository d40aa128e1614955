"""The objects behind the numbers of events."""

from __future__ import annotations

from dataclasses import dataclass, field

from truestep import events as ev
from truestep.events import Event


@dataclass(slots=True)
class Objects:
    """Models, optimizers, schedules, loaders and parameters, as the events that introduced them described them."""

    models: dict[int, ev.ModelMet] = field(default_factory=dict)
    functions: dict[int, ev.FunctionMet] = field(default_factory=dict)
    """Functions that are models."""
    optimizers: dict[int, ev.OptimizerBuilt] = field(default_factory=dict)
    schedulers: dict[int, ev.SchedulerBuilt] = field(default_factory=dict)
    loaders: dict[int, ev.LoaderMet] = field(default_factory=dict)
    parameters: dict[int, ev.ParameterMet] = field(default_factory=dict)
    group: ev.GroupJoined | None = None
    """The process group; None for a single process."""
    held_by: dict[int, set[int]] = field(default_factory=dict)
    """Parameter number to the optimizers that hold it, from construction or add_param_group."""
    holds: dict[int, set[int]] = field(default_factory=dict)
    """Optimizer number to the parameters that it holds."""

    def note(self, event: Event) -> None:
        """Register the objects that an event introduces."""
        match event:
            case ev.ModelMet():
                self.models[event.model] = event
            case ev.FunctionMet():
                self.functions[event.model] = event
            case ev.ParameterMet():
                self.parameters[event.parameter] = event
            case ev.OptimizerBuilt():
                self.optimizers[event.optimizer] = event
                self._hold(event.optimizer, event.parameters)
            case ev.ParametersAdded():
                self._hold(event.optimizer, event.parameters)
            case ev.SchedulerBuilt():
                self.schedulers[event.scheduler] = event
            case ev.GroupJoined():
                self.group = event
            case ev.LoaderMet():
                self.loaders[event.loader] = event

    def _hold(self, optimizer: int, parameters: tuple[int, ...]) -> None:
        self.holds.setdefault(optimizer, set()).update(parameters)
        for parameter in parameters:
            self.held_by.setdefault(parameter, set()).add(optimizer)

    def cleared_by(self, event: ev.GradientsZeroed) -> set[int]:
        """Return the optimizers with all their gradients cleared by a call of an optimizer or of a model."""
        if event.optimizer is not None:
            return {event.optimizer}
        model = self.models.get(event.model or 0)
        cleared = set(model.parameters if model is not None else ())
        return {number for number, held in self.holds.items() if held <= cleared}

    def name(self, event: Event | None, fallback: str) -> str:
        """Return the user's name for an object, from the event that introduced it."""
        return str(getattr(event, "name", "") or fallback)

    def optimizer_name(self, number: int | None) -> str:
        return self.name(self.optimizers.get(number or 0), "optimizer")

    def model_name(self, number: int | None) -> str:
        return self.name(self.models.get(number or 0) or self.functions.get(number or 0), "model")

    def scheduler_name(self, number: int | None) -> str:
        return self.name(self.schedulers.get(number or 0), "scheduler")

    def loader_name(self, number: int | None) -> str:
        return self.name(self.loaders.get(number or 0), "loader")

    def parameter_names(self, numbers: tuple[int, ...], limit: int = 3) -> str:
        """Return names of parameters for a sentence: the first few and the number of the others."""
        known = [self.parameters[n].name for n in numbers if n in self.parameters]
        shown = ", ".join(known[:limit])
        return shown if len(known) <= limit else f"{shown} and {len(known) - limit} more"
