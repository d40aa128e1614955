"""The measurements of a variant of a run: one instrument per file.

fingerprints: checksums of all state at every step
learning: learning rates, trained weights and targets
losses: loss and gradient norm of every step
phases: time of every step by phase
profile: time by line, module and operation, and memory
survey: device, and time by phase over a window
turns: timed steps in turns with another run
watched: findings and report of a supervised run

Files with a leading underscore are parts of these: _instrument is the base class, _clock the clock by phase.
"""

from __future__ import annotations

from truestep.experiments.instruments._instrument import Instrument
from truestep.experiments.instruments.fingerprints import Fingerprints
from truestep.experiments.instruments.learning import Learning
from truestep.experiments.instruments.losses import Losses
from truestep.experiments.instruments.phases import Phases
from truestep.experiments.instruments.profile import Profile
from truestep.experiments.instruments.survey import Survey
from truestep.experiments.instruments.turns import Turns
from truestep.experiments.instruments.watched import Watched

_ALL: tuple[type[Instrument], ...] = (Fingerprints, Learning, Losses, Phases, Profile, Survey, Turns, Watched)

INSTRUMENTS: dict[str, type[Instrument]] = {instrument.name: instrument for instrument in _ALL}
"""All instruments by name."""

__all__ = ["INSTRUMENTS", "Instrument"]
