from __future__ import annotations

from truestep.events import BackwardEnded, Event, LoaderMet, LoaderUnread, RunEnded
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._loader_names import is_held_out
from truestep.rules._rule import Progress, Rule

_LEAST_SHARE = 0.1
"""Least size of the unread loader, as a part of the one that is read."""


class TrainingOnEvaluationData(Rule):
    """The model is trained on the data that it is evaluated with, and the training data is never read.

    What it does
    ------------
    At the end of the run, finds a shuffled DataLoader that was built and never read, while the model was trained on the
    batches of another one, which reads its samples in their order and is also read by the evaluation. The unread loader
    must have more samples than that one, or a tenth of them if its name does not say that they are held out.

    Why it matters
    --------------
    The metric is that of memorised samples, and the training data is not used. In the proof the program reports an
    accuracy of 0.99, and on fresh samples it is 7 points lower than after training on the training data.

    Example
    -------
    ::

        train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
        val_loader = DataLoader(val_set, batch_size=32)

        for epoch in range(10):
            for x, y in val_loader:                 # meant: train_loader
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
            evaluate(model, val_loader)

    Fix
    ---
    Train on the batches of the training data::

        for x, y in train_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()

    Known false alarms
    ------------------
    Training in the order of the data set, with an evaluation on the same samples, in a program that also builds a
    shuffled loader for no use. Not reported: a loader that is read anywhere, and training on another
    shuffled loader.

    References
    ----------
    - https://scikit-learn.org/stable/common_pitfalls.html#data-leakage
    """

    id = "training-on-evaluation-data"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (LoaderUnread,)
    needs = (LoaderMet, BackwardEnded)

    def __init__(self) -> None:
        super().__init__()
        self._unread: list[LoaderUnread] = []

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if run.samples.evaluated else "no evaluation on a DataLoader")

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, LoaderUnread) and event.samples is not None:
            self._unread.append(event)

    def ended(self, event: RunEnded, run: Progress) -> None:
        trained = {number: site for number, site in run.samples.trained.items() if number in run.loaders}
        if event.how != "finished" or any(run.loaders[number].sampler != "sequential" for number in trained):
            return
        for number in trained.keys() & run.samples.evaluated.keys():
            met = run.loaders[number]
            most = (met.batches or 0) * (met.batch_size or 0)
            left = next((one for one in self._unread if _is_enough(one, most)), None)
            if left is None:
                continue
            name = run.loader_name(number)
            draft = self.report(
                trained[number],
                f"the model is trained on `{name}`, which it is evaluated with, and `{left.name}` is never read",
                run=run,
                label="trains on the batches of the evaluation",
                related=(
                    Mark(run.samples.evaluated[number], "evaluates on the same samples"),
                    Mark(left.site, "built and never read"),
                ),
                help=f"train on the batches of `{left.name}`",
                cost=f"the {left.samples:,} samples of `{left.name}` were not used",
                unit="passes",
                key=number,
            )
            draft.count, draft.first_step = run.samples.tally["trained", number], 0


def _is_enough(unread: LoaderUnread, trained: int) -> bool:
    """Return True if a loader that is never read can be the one to train on, in place of one with so many samples."""
    samples = unread.samples or 0
    return 0 < trained < samples or (samples >= _LEAST_SHARE * trained > 0 and not is_held_out(unread.name))
