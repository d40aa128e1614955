from __future__ import annotations

from truestep.events import EndsRead, Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule


class ValuePastTerminal(Rule):
    """The target of a value goes on past the end of the episode: it is not masked where a transition ended it.

    What it does
    ------------
    Looks, at sampled steps, where a loss or its backward pass is called, for targets without a gradient that are a
    reward plus a discount times a value, and for flags of their batch that name the end of an episode. Reports a target
    that has a value in each row that ended its episode. The rows must show that the ends are those of the environment:
    no transition has both ended and not, and the rows that ended differ from the others, in one column or by their
    neighbours.

    Why it matters
    --------------
    No reward comes after the end, and the value there is zero. The network is never trained on these states, so its
    value there is arbitrary, and the target passes it on to all states before. A fall then costs as little as any other
    step, and values grow far above the rewards. In the proof, the value of the start on a slippery lake
    is 3.3 to 4.0 too high, where no return is above 1; that of the correct program differs by 0.06 to 0.16.

    Example
    -------
    ::

        following = target_network(after).max(1).values
        wanted = rewards + 0.99 * following

    Fix
    ---
    Multiply the value by zero where the episode has ended::

        wanted = rewards + 0.99 * (1 - done) * following

    Known false alarms
    ------------------
    Flags of a goal that is reached while the episode goes on, as in some tasks with hindsight replay; states after the
    end that are followed by themselves in the data, so that their value is learnt. Not reported: ends by a limit of
    time alone, which do not depend on the state; flags that the function with the loss does not hold, or that
    have other names; targets of lists of steps, and targets that another function computes.

    References
    ----------
    - https://docs.pytorch.org/tutorials/intermediate/reinforcement_q_learning.html
    - https://arxiv.org/abs/1712.00378
    """

    id = "value-past-terminal"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (EndsRead,)
    needs = (EndsRead,)

    def __init__(self) -> None:
        super().__init__()
        self._masked: set[Site | None] = set()
        """Lines of losses with a target without a value at ends."""
        self._targets: dict[Site | None, set[Site | None]] = {}
        """Line of a loss to those of its targets with a value there."""

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, EndsRead):
            return
        key = event.made or event.site
        if not event.carried:
            self._masked.add(event.site)
            for one in self._targets.pop(event.site, ()):
                self.withdraw(one)
        if event.site in self._masked:
            return
        self._targets.setdefault(event.site, set()).add(key)
        if not self.seen_before(key, run):
            return
        through = Mark(event.site, "the loss with this target")
        self.report(
            event.made or event.site,
            "the target has a value of the next state where the episode has ended",
            run=run,
            key=key,
            label=f"a discounted value is added in each row that `{event.name}` marks as an end",
            related=(through,) if event.made else (),
            cost="the value of a state that is never trained is passed on to all states before it",
            help=f"set the value of the next state to zero where `{event.name}` marks an end",
            unit="losses read",
        )
