"""What an experiment looks at in a run: one instrument per file."""

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
"""Every instrument by its name."""

__all__ = ["INSTRUMENTS", "Instrument"]
