from __future__ import annotations

from truestep.events import BackwardEnded, BatchStatisticsTaken, Event, ReplicaWrapped
from truestep.findings import Severity
from truestep.rules._batch_statistics import TINY, Looks, StatisticsRule
from truestep.rules._rule import Progress

_FEW = 4
_ENOUGH = 6
"""Least values per channel of all ranks together with which less is lost."""


class BatchStatisticsPerRank(StatisticsRule):
    """Batch normalisation is trained on three or four values per channel, and the ranks have more together.

    What it does
    ------------
    Counts, at sampled steps, the values per channel behind the statistics of each batch normalisation layer in train
    mode, on this rank: samples times positions. At the end of the run, reports models in `DistributedDataParallel` in
    which no such layer had more than four in any sampled step.

    Why it matters
    --------------
    The wrapper averages gradients, not statistics: each rank normalises by those of a few samples, and an
    evaluation by the running statistics of rank 0. In the proof two ranks with three samples each end at an accuracy of
    0.66, and 0.72 with `LayerNorm`. With statistics of all ranks, nets of three tasks gained 4 to 13 points with
    three values on each of two to eight ranks, 1 to 10 with four, and at most 2 with eight.

    Example
    -------
    ::

        net = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
        model = DistributedDataParallel(net)
        loader = DataLoader(data, batch_size=12 // world_size, sampler=DistributedSampler(data))

    Fix
    ---
    Take the statistics over all ranks, on GPUs::

        net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
        model = DistributedDataParallel(net)

    ``Run(sync_batchnorm=True)`` does so on CPUs too. Or normalise each sample separately, with `LayerNorm` or
    `GroupNorm`.

    Known false alarms
    ------------------
    None known. Not reported: two values or fewer, which `batchnorm-tiny-batch` reports, a last small batch, a layer
    behind global pooling if others have enough values, layers in eval mode, `SyncBatchNorm`, and batches that grow.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html
    - https://arxiv.org/abs/1803.08494
    """

    id = "batch-statistics-per-rank"
    since = "0.1"
    severity = Severity.WARNING
    account = "calls"
    watches = (BatchStatisticsTaken, BackwardEnded, ReplicaWrapped)
    needs = (BatchStatisticsTaken, ReplicaWrapped)
    most = _FEW

    def __init__(self) -> None:
        super().__init__()
        self._wrapped: list[ReplicaWrapped] = []

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, ReplicaWrapped):
            self._wrapped.append(event)
        else:
            super().observe(event, run)

    def judge(self, model: int, looks: Looks, run: Progress) -> None:
        own = set(run.models[model].parameters) if model in run.models else set()
        ranks = max((len(wrapped.ranks) for wrapped in self._wrapped if own & set(wrapped.parameters)), default=0)
        if looks.most <= TINY or ranks * looks.most < _ENOUGH:
            return
        latest = looks.latest
        layers = f"{latest.layers} layers" if latest.layers > 1 else "one layer"
        draft = self.report(
            latest.site,
            f"the batch normalisation of `{run.model_name(model)}` is trained on {looks.most} values per channel, and "
            f"{ranks} ranks have {ranks * looks.most}",
            run=run,
            label=f"{layers} of {latest.kind}, no more than {looks.most} values per channel",
            help="call `SyncBatchNorm.convert_sync_batchnorm(model)` before the model is wrapped, or use `LayerNorm`",
            cost="each rank normalises by a few of the samples of a step, and an evaluation by those of rank 0",
            unit="sampled steps",
        )
        draft.count = draft.total = looks.count
        draft.first_step = looks.first_step
