from __future__ import annotations

from truestep.events import AdvantageFollowed, Event
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._readings import ReadingRule
from truestep.rules._rule import Progress


class AdvantageWithGradient(ReadingRule):
    """The advantage in a policy loss has a gradient to the critic: the policy loss trains the values, too.

    What it does
    ------------
    Reads, at sampled steps, the tape of the loss. Reports a product of a log-probability of fixed actions and a
    difference to a value that has a gradient, if the same loss has an error of this value, as the critic's has. The
    log-probability can be of a softmax, a sigmoid, a normal or a beta distribution, and a ratio of probabilities counts
    as one. The value is an output of a layer, and each has parameters that the other lacks, or both are from one layer.

    Why it matters
    --------------
    The advantage is a weight: it says how much an action is worth, and the policy loss is to change the policy only.
    With a gradient, the policy loss is lower if the values are higher wherever an action is not certain, and the critic
    learns values that are far too high. Returns that are continued with these values pass the error on. In the proof,
    the mean value is 7.5 to 12.2 instead of 0.85, and an agent that reached its goal at every tenth move never reaches
    it.

    Example
    -------
    ::

        advantage = returns - critic(states).squeeze(1)
        loss = -(policy.log_prob(actions) * advantage).mean() + 0.5 * advantage.pow(2).mean()

    Fix
    ---
    Detach it in the policy loss::

        loss = -(policy.log_prob(actions) * advantage.detach()).mean() + 0.5 * advantage.pow(2).mean()

    Known false alarms
    ------------------
    A score-function estimator with the ratio ``exp(logp - logp.detach())`` times a linear cost of a trained output,
    beside a squared error of that output; a gradient that a hook on the advantage sets to zero; a residual times the
    square of another output's residual; a multiplier of a constraint that is written as a logarithm of a sigmoid. Not
    reported: advantages in a loss without an error of the values, since the critic may be trained by the policy loss
    alone; weights that are exponentials of an advantage; values with an error in another backward pass, with a
    ``relu``, ``softplus`` or ``sigmoid`` at the end, or of a compiled critic; a backward pass with ``inputs`` that
    leave out the critic. Losses inside ``torch.compile`` and ``torch.func`` are not read.

    References
    ----------
    - https://arxiv.org/abs/1602.01783
    - https://spinningup.openai.com/en/latest/spinningup/rl_intro3.html
    """

    id = "advantage-with-gradient"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (AdvantageFollowed,)
    needs = (AdvantageFollowed,)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, AdvantageFollowed) or not self.shown(event.site, run, right=not event.gradient):
            return
        name = f"`{event.name}`" if event.name else "a factor of the log-probability"
        through = Mark(event.site, "the backward pass through it and through the log-probability")
        self.report_line(
            event.site,
            event.made or event.site,
            "the advantage in the policy loss has a gradient to the critic",
            run=run,
            label=f"{name} is computed with gradients",
            related=(through,) if event.made else (),
            cost="the policy loss moves the values up where actions are uncertain, away from the returns",
            help="detach the advantage in the policy loss",
            unit="backward passes read",
        )
