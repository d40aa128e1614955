from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep import source
from truestep.events import (
    BackwardEnded,
    CheckpointLoaded,
    Event,
    LoaderMet,
    LoaderUnread,
    ResultRowsScored,
    RunEnded,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._loader_names import is_held_out, is_only_held_out, is_trained_on
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import splits
from truestep.syntax import Program, Suspicion, dotted

_LEAST_SHARE = 0.1
"""Least size of the unread loader, as a part of the one that is read."""
_WHOLE, _CLEAN = 0.98, 0.1
"""Shares of the rows of an evaluation in the loss: from the first all were trained on, up to the second none."""
_LEAST_ROWS = 10
"""Least number of rows of an evaluation that were trained on."""


class TrainingOnEvaluationData(Rule):
    """The model is trained on the data that it is evaluated with.

    What it does
    ------------
    At the end of the run, finds a shuffled DataLoader that was built and never read, while the model was trained on the
    batches of another one, which reads its samples in their order and is also read by the evaluation. The unread loader
    must have more samples than that one, or a tenth of them if its name does not say that they are held out. In a run
    that begins with new weights, an unread loader with a name such as ``train_loader`` is enough if all that are
    trained on have names such as ``test_loader``.

    Where one call computes the results of all samples, as of the nodes of a graph, compares the rows of the result that
    the loss chooses with those that the evaluation chooses, by masks, indices or slices. Rows are in the loss if the
    result has a gradient there, towards the targets of the evaluation. Reports a selection with a name such as
    ``test_mask`` or ``idx_val`` if more than a tenth of its rows are in the loss.

    Why it matters
    --------------
    The metric is that of memorised samples. In the proof with loaders the program reports an
    accuracy of 0.99, and on fresh samples it is 7 points lower than after training on the training data. In the proof
    with a graph it reports 1.00 for the held-out nodes, and reaches 0.69 to 0.81 on another graph.

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

    and in a graph, where the loss needs a mask as well::

        out = model(features, adjacency)
        loss = F.cross_entropy(out, labels)             # meant: out[train_mask], labels[train_mask]
        ...
        accuracy = (out.argmax(1) == labels)[test_mask].float().mean()

    Fix
    ---
    Train on the batches of the training data, and on the nodes of the training mask::

        for x, y in train_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()

    Known false alarms
    ------------------
    Training in the order of the data set, with an evaluation on the same samples, in a program that also builds a
    shuffled loader for no use. Not reported: a loader that is read anywhere, training on another
    shuffled loader, selections with a name such as ``train_mask``, of one class, or of rows that an earlier evaluation
    read before they were trained on, and rows with a loss towards other targets, such as predictions of a teacher.

    References
    ----------
    - https://pytorch-geometric.readthedocs.io/en/latest/get_started/introduction.html#learning-methods-on-graphs
    - https://scikit-learn.org/stable/common_pitfalls.html#data-leakage
    """

    id = "training-on-evaluation-data"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (BackwardEnded, LoaderUnread, ResultRowsScored)
    needs = (BackwardEnded,)
    asks = "the loss has no rows of the evaluation"

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return splits.training_on_evaluation_data(program)

    def __init__(self) -> None:
        super().__init__()
        self._unread: list[LoaderUnread] = []
        self._scored: dict[tuple[int, str], ResultRowsScored] = {}
        """Model and selection to the latest evaluation on these rows."""
        self._counts: dict[tuple[int, str], int] = {}
        self._clean: dict[tuple[int, str], ResultRowsScored] = {}
        """Those with an evaluation on rows that were not in the loss."""
        self._is_new: bool | None = None
        """Whether no weights were loaded before the first backward pass: a finished model may be adapted to a test."""

    def unobserved(self, run: Progress) -> str:
        if self._scored:
            return super().unobserved(run)
        met = LoaderMet.absent if LoaderMet not in run.met else ""
        return super().unobserved(run) or met or ("" if run.samples.evaluated else "no evaluation on a DataLoader")

    def suspected(self) -> bool:
        unknown = any(not one.agreed and one.hits > _CLEAN * one.samples for one in self._scored.values())
        return super().suspected() or unknown

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, LoaderUnread):
            self._unread.append(event)
        elif isinstance(event, BackwardEnded) and self._is_new is None:
            self._is_new = not run.weights.loaded and CheckpointLoaded not in run.met
        elif isinstance(event, ResultRowsScored):
            self._score(event, 1)

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, ResultRowsScored):
            self._score(event, times)

    def _score(self, event: ResultRowsScored, times: int) -> None:
        key = event.model, event.name
        self._scored[key] = event
        self._counts[key] = self._counts.get(key, 0) + times
        if event.hits <= _CLEAN * event.samples:
            self._clean[key] = event

    def _judge_rows(self, run: Progress) -> None:
        """Report evaluations on rows of a result that the loss has too."""
        for key, one in self._scored.items():
            named = any(is_trained_on(name) and name[0] != "~" for name in one.names)
            if not one.agreed or one.hits < max(_LEAST_ROWS, _CLEAN * one.samples) or named:
                continue
            if not _is_held_out(one) or key in self._clean:
                continue
            clean = [other for (model, _), other in self._clean.items() if model == one.model]
            whole = one.hits >= _WHOLE * one.samples
            if whole and any(map(_is_held_out, clean)):
                continue  # a validation set that is trained on in the end, beside a test
            which = "all" if one.trained == one.rows else f"{one.trained:,}"
            share = f"the {one.samples:,}" if whole else f"{one.hits:,} of the {one.samples:,}"
            draft = self.report(
                one.loss or one.site,
                f"{share} samples of `{one.name}` are in the loss, and the model is evaluated on them",
                run=run,
                label=f"the loss of {which} of the {one.rows:,} rows of the result",
                related=(Mark(one.site, "evaluates on rows of the loss"),) if one.loss and one.site else (),
                help="compute the loss of the training rows only",
                cost="the evaluation measures memorised samples",
                unit="evaluations",
                key=one.loss or one.site,
            )
            draft.count, draft.first_step = max(draft.count, self._counts[key]), 0

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how == "finished":
            self._judge_rows(run)
        trained = {number: site for number, site in run.samples.trained.items() if number in run.loaders}
        if event.how != "finished":
            return
        are_held_out = all(is_only_held_out(run.loader_name(number)) for number in trained)
        in_order = all(run.loaders[number].sampler == "sequential" for number in trained)
        for number in trained:
            met = run.loaders[number]
            most = (met.batches or 0) * (met.batch_size or 0)
            is_read = in_order and number in run.samples.evaluated
            left = next((one for one in self._unread if is_read and _is_enough(one, most)), None)
            if left is None and self._is_new and are_held_out:
                left = next((one for one in self._unread if is_trained_on(one.name) and not _is_looped_over(one)), None)
            if left is None:
                continue
            name, evaluated = run.loader_name(number), run.samples.evaluated.get(number)
            also = (Mark(evaluated, "evaluates on the same samples"),) if evaluated else ()
            with_it = ", which it is evaluated with," if also else ""
            draft = self.report(
                trained[number],
                f"the model is trained on `{name}`{with_it} and `{left.name}` is never read",
                run=run,
                label=f"trains on {'the batches of the evaluation' if also else 'held-out samples'}",
                related=(*also, Mark(left.site, "built and never read")),
                help=f"train on the batches of `{left.name}`",
                cost=f"the {f'{left.samples:,} ' if left.samples else ''}samples of `{left.name}` were not used",
                unit="passes",
                key=number,
            )
            draft.count, draft.first_step = run.samples.tally["trained", number], 0


def _is_held_out(event: ResultRowsScored) -> bool:
    """Return True if a name of a selection of rows says that they are not to be trained on."""
    inverted = any(name.startswith("~") and is_trained_on(name) for name in event.names)
    return inverted or any(map(is_held_out, event.names))


def _is_enough(unread: LoaderUnread, trained: int) -> bool:
    """Return True if a loader that is never read can be the one to train on, in place of one with so many samples."""
    samples = unread.samples or 0
    return 0 < trained < samples or (samples >= _LEAST_SHARE * trained > 0 and not is_held_out(unread.name))


def _is_looped_over(unread: LoaderUnread) -> bool:
    """Return True if the file has a loop over a loader that this run did not read: a stage that is switched off."""
    tree = None if unread.site is None else source.parsed(unread.site.path)
    loops = () if tree is None else (node for node in source.walk(tree) if isinstance(node, ast.For))
    return any(
        unread.name in {dotted(one) for one in ast.walk(loop.iter) if isinstance(one, ast.expr)} for loop in loops
    )
