"""Accounts: products of a training run and their use. Pure Python over events; facts, no verdicts.

- `run_objects`: the models, optimizers, schedules, loaders and parameters behind the numbers of events.
- `tally`: counts that can be repeated, because repeated steps are only counted.
- `_account`: base class of an account, and texts for its line in the ledger.
- `all_accounts`: all accounts of a run.
- `steps`: updates of the parameters, by optimizers and by hand.
- `gradients`: backward passes, by the line that makes them: used, used again, discarded.
- `parameters`: parameters of models and optimizers: trained, frozen, loaded, left alone.
- `calls`: calls of models, by line, mode and purpose.
- `randomness`: dropout and similar layers, by the purpose of the call.
- `losses`: the losses that are differentiated, each with its value at first and at last.
- `samples`: passes over the data, and the inputs of models.
- `rates`: learning rates that the steps used, and the schedules that set them.
- `state`: files saved and loaded, state dicts taken and loaded.
- `time`: the wait for data.
"""

from truestep.accounts._account import Account, Entry
from truestep.accounts.all_accounts import Accounts, Changes
from truestep.accounts.calls import CallLine, Calls
from truestep.accounts.gradients import Gradients, PassLine
from truestep.accounts.losses import Losses, LossLine
from truestep.accounts.parameters import Parameters
from truestep.accounts.randomness import Randomness
from truestep.accounts.rates import RateLine, Rates, Segment
from truestep.accounts.run_objects import Objects
from truestep.accounts.samples import Samples
from truestep.accounts.state import State
from truestep.accounts.steps import Steps
from truestep.accounts.tally import Tally
from truestep.accounts.time import Time

__all__ = [
    "Account",
    "Accounts",
    "CallLine",
    "Calls",
    "Changes",
    "Entry",
    "Gradients",
    "LossLine",
    "Losses",
    "Objects",
    "Parameters",
    "PassLine",
    "Randomness",
    "RateLine",
    "Rates",
    "Samples",
    "Segment",
    "State",
    "Steps",
    "Tally",
    "Time",
]
