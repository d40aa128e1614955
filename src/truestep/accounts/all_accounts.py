"""All accounts of a run."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from truestep.accounts._account import Account
from truestep.accounts.calls import Calls
from truestep.accounts.gradients import Gradients
from truestep.accounts.losses import Losses
from truestep.accounts.parameters import Parameters
from truestep.accounts.randomness import Randomness
from truestep.accounts.rates import Rates
from truestep.accounts.run_objects import Objects
from truestep.accounts.samples import Samples
from truestep.accounts.state import State
from truestep.accounts.steps import Steps
from truestep.accounts.time import Time
from truestep.events import Event

Changes = tuple[tuple[int, Hashable, int], ...]
"""Counts that were added to accounts: number of the account, key and count."""


class Accounts(Objects):
    """The objects of a run and its accounts, in the order of the ledger."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = Steps(self)
        self.gradients = Gradients(self)
        self.weights = Parameters(self)
        self.calls = Calls(self)
        self.losses = Losses(self)
        self.samples = Samples(self)
        self.randomness = Randomness(self, self.calls)
        self.rates = Rates(self)
        self.state = State(self)
        self.time = Time(self)
        self.accounts: Sequence[Account[Any]] = [
            account for account in vars(self).values() if isinstance(account, Account)
        ]

    def note(self, event: Event) -> None:
        """Register the objects of an event, and enter it into each account."""
        super().note(event)
        for account in self.accounts:
            account.note(event)

    def cut(self) -> Changes:
        """Return the counts added since the last call."""
        return tuple(
            (number, key, count) for number, account in enumerate(self.accounts) for key, count in account.tally.cut()
        )

    def repeat(self, changes: Changes, times: int) -> None:
        """Add changes ``times`` more times."""
        for number, key, count in changes:
            self.accounts[number].tally.repeat(((key, count),), times)
