from __future__ import annotations

from truestep.events import Event, TargetFollowed
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._readings import ReadingRule
from truestep.rules._rule import Progress


class TargetWithGradient(ReadingRule):
    """The target of a loss is computed by the model in training, with a gradient: the model moves its own target.

    What it does
    ------------
    Reads, at sampled steps, the tape below squared and absolute errors, of torch and by hand. Reports an error if both
    of its operands have a gradient to the same parameters, and one of them has the form of a target in reinforcement
    learning: a tensor without a gradient, such as a reward, plus a value times a discount below 1, where the value is
    the largest of several, is picked by an index, or is set to zero at the ends of episodes.

    Why it matters
    --------------
    The target is the best estimate at this moment, and is to stay where it is during the step. With a gradient, the
    network lowers its error by a change of the value of the *next* state as well, and information flows from a state to
    its successors. The loss is lower, and the policy is worse. In the proof, Q-learning on a slippery lake reaches its
    goal in 42 % of the episodes instead of 75 %.

    Example
    -------
    ::

        values = network(states).gather(1, actions).squeeze(1)
        following = network(after).max(1).values
        loss = F.mse_loss(values, rewards + 0.99 * (1 - over) * following)

    Fix
    ---
    Compute the target without gradients, by the same network or by a target network::

        with torch.no_grad():
            following = target_network(after).max(1).values

    Known false alarms
    ------------------
    Residual gradient algorithms, which minimise the Bellman error itself. Not reported: targets by a network that is
    not trained by the loss, errors between two outputs of a model without a reward and a discount, and values without
    a choice and a mask. Losses inside ``torch.compile`` and ``torch.func`` are not read.

    References
    ----------
    - https://docs.pytorch.org/tutorials/intermediate/reinforcement_q_learning.html
    - https://www.sciencedirect.com/science/article/pii/B978155860377650013X
    """

    id = "target-with-gradient"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (TargetFollowed,)
    needs = (TargetFollowed,)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, TargetFollowed) or not self.shown(event.site, run, right=not event.gradient):
            return
        name = f", as `{event.name}`," if event.name else ""
        self.report_line(
            event.site,
            event.made or event.site,
            "the target of the loss has a gradient to the model that it trains",
            run=run,
            label=f"the value of the next state{name} is computed with gradients",
            related=(Mark(event.site, "the backward pass through the value and its target"),) if event.made else (),
            cost="the network also changes the value of the next state to fit that of the state before",
            help="compute the target under `torch.no_grad()`, or detach it",
            unit="backward passes read",
        )
