from __future__ import annotations

from truestep.events import BackwardEnded, BatchStatisticsTaken
from truestep.findings import Severity
from truestep.rules._batch_statistics import TINY, Looks, StatisticsRule
from truestep.rules._rule import Progress


class BatchnormTinyBatch(StatisticsRule):
    """Batch normalisation is trained on two values per channel.

    What it does
    ------------
    Counts, at sampled steps, the values per channel behind the statistics of each batch normalisation layer in train
    mode: samples times positions. At the end of the run, reports models in which no such layer had more than two values
    per channel in any sampled step.

    Why it matters
    --------------
    Two values always become 1 and -1: only their order is left. In evaluation, the running statistics produce values
    that the next layers were never trained on. In the proof the net reaches an accuracy of 0.40, and 0.67 with
    `LayerNorm`. With eight values nothing is lost.

    Example
    -------
    ::

        net = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
        loader = DataLoader(data, batch_size=2, shuffle=True)

    Fix
    ---
    Normalise each sample separately, or use larger batches (gradient accumulation does not help)::

        net = nn.Sequential(nn.Linear(20, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 4))

    With several ranks that have larger batches together, ``SyncBatchNorm``, or ``Run(sync_batchnorm=True)``.

    Known false alarms
    ------------------
    None known. Not reported: a last batch of two, a layer behind global pooling if others have enough values, layers in
    eval mode, layers without running statistics, `SyncBatchNorm`, batches that grow, and overfitting one batch on
    purpose.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html
    - https://arxiv.org/abs/1803.08494
    """

    id = "batchnorm-tiny-batch"
    since = "0.1"
    severity = Severity.WARNING
    account = "calls"
    watches = (BatchStatisticsTaken, BackwardEnded)
    needs = (BatchStatisticsTaken,)
    most = TINY

    def judge(self, model: int, looks: Looks, run: Progress) -> None:
        latest = looks.latest
        layers = f"{latest.layers} layers" if latest.layers > 1 else "one layer"
        draft = self.report(
            latest.site,
            f"the batch normalisation of `{run.model_name(model)}` is trained on two values per channel",
            run=run,
            label=f"{layers} of {latest.kind}, no more than two values per channel",
            help="use `LayerNorm` or `GroupNorm`, or give the model larger batches"
            if run.group is None
            else "use `LayerNorm`, or on GPUs `SyncBatchNorm.convert_sync_batchnorm(model)` before wrapping",
            cost="two values always become 1 and -1 in training: only their order is left",
            unit="sampled steps",
        )
        draft.count = draft.total = looks.count
        draft.first_step = looks.first_step
