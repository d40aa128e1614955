from __future__ import annotations

from truestep.events import Event, ReturnsFollowed
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._readings import ReadingRule
from truestep.rules._rule import Progress


class ReturnsInWrongOrder(ReadingRule):
    """The returns run backwards in time: an action is weighted with the rewards before it, not with those after it.

    What it does
    ------------
    Reads, at sampled steps, the weights of the log-probabilities of actions in a loss, or the returns from which they
    are differences, and looks for the rewards among the variables where backward is called. Reports weights that are
    each a reward plus a discount times the weight of the action before. The sums must be exact, for a discount that is
    not known before. The order of the actions is that in which their log-probabilities were computed.

    Why it matters
    --------------
    Rewards before an action do not depend on it. Weights made of them say nothing about the action, and the policy does
    not learn, or learns to end its episodes late or early. The loss looks as always. In the proof, answers
    are rewarded one step later: the agent stays at chance, at 0.50 right answers instead of 0.92.

    Example
    -------
    ::

        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + 0.99 * total
            returns.append(total)

    Fix
    ---
    Put each sum in front of those of the later steps::

        returns.insert(0, total)

    or reverse the list after the loop.

    Known false alarms
    ------------------
    Actions that are chosen from the last one to the first, as in planning from a goal. Not reported: rewards that are
    not among the variables of the function with the backward pass, of its objects, or of the file; a reward at the
    last step only; returns of several episodes that are joined; returns in minibatches; files in which a loop that
    runs backwards calls a model or keeps other lists too; targets of a value without a policy in the same loss.

    References
    ----------
    - https://spinningup.openai.com/en/latest/spinningup/rl_intro3.html
    - https://docs.pytorch.org/docs/stable/distributions.html#score-function
    """

    id = "returns-in-wrong-order"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (ReturnsFollowed,)
    needs = (ReturnsFollowed,)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, ReturnsFollowed) or not self.shown(event.site, run, right=not event.earlier):
            return
        name = f"`{event.name}`" if event.name else "the weight of a log-probability"
        through = Mark(event.site, "the backward pass with these weights")
        self.report_line(
            event.site,
            event.made or event.site,
            "the returns are sums of the rewards before an action",
            run=run,
            label=f"{name} has the rewards of earlier steps, not of later ones",
            related=(through,) if event.made else (),
            cost="the weights do not depend on the consequences of an action",
            help="sum from the last reward to the first, and reverse the list of the sums",
            unit="backward passes read",
        )
