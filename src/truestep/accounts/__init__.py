"""Accounts: products of a training run and their use. Pure Python over events; facts, no verdicts.

- `run_objects`: the models, optimizers, schedules, loaders and parameters behind the numbers of events.
- `tally`: counts that can be repeated, because repeated steps are only counted.
- `gradients`: backward passes, by the line that makes them: used, used again, discarded.
"""

from truestep.accounts.gradients import Entry, Gradients, PassLine
from truestep.accounts.run_objects import Objects
from truestep.accounts.tally import Tally

__all__ = ["Entry", "Gradients", "Objects", "PassLine", "Tally"]
