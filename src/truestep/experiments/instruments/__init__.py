"""The measurements of a variant of a run: one instrument per file.

inference: latency of the script's model
layers: layers, gradients and losses of one step
learning: learning rates, trained weights and targets
needs: memory that a step needs
losses: loss and gradient norm of every step
watched: findings and report of a supervised run
profiling: time by line, module and operation, and memory
state: checksums of all state at every step
timing: time by phase, and timed steps in turns

instrument: base class
model_names: the model that a called module belongs to, and its name in the script
given: losses of the script's backward passes, without the scale of fp16
"""

from __future__ import annotations

from truestep.experiments.instruments.inference.script_model import InferenceTimes
from truestep.experiments.instruments.instrument import Instrument
from truestep.experiments.instruments.layers.step_layers import StepLayers
from truestep.experiments.instruments.learning import Learning
from truestep.experiments.instruments.losses import Losses
from truestep.experiments.instruments.needs.needs import StepNeeds
from truestep.experiments.instruments.profiling.profile import StepProfile
from truestep.experiments.instruments.state.fingerprints import Fingerprints
from truestep.experiments.instruments.state.operations import Operations
from truestep.experiments.instruments.timing.phases import Phases
from truestep.experiments.instruments.timing.survey import Survey
from truestep.experiments.instruments.timing.turns import Turns
from truestep.experiments.instruments.watched import Watched

_ALL: tuple[type[Instrument], ...] = (
    Fingerprints,
    InferenceTimes,
    Learning,
    Losses,
    Operations,
    Phases,
    StepLayers,
    StepNeeds,
    StepProfile,
    Survey,
    Turns,
    Watched,
)

INSTRUMENTS: dict[str, type[Instrument]] = {instrument.name: instrument for instrument in _ALL}
"""All instruments by name."""

__all__ = ["INSTRUMENTS", "Instrument"]
