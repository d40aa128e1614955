"""Processes that train one model together: observed on each rank, without an operation over ranks.

probe          the process group, models that are wrapped for it, and the program's own operations over ranks
weights        values of parameters after sampled steps, which the report compares
"""

from truestep.probes.ranks.probe import RankProbe
from truestep.probes.ranks.weights import RankWeights

__all__ = ["RankProbe", "RankWeights"]
