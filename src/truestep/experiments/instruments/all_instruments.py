"""All instruments by their names."""

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
