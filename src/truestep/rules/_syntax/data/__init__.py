"""Data of a training, its results and metrics.

- `batches`: figures that are added up wrongly over the batches of an evaluation.
- `decisions`: areas under a curve of decisions.
- `figures`: figures with a wrong formula.
- `formulas`: perplexities in another base than their loss, overlaps of boxes without a limit at zero.
- `loaders`: loaders and samplers.
- `parts`: transforms that are assigned through a part of a split.
- `results`: results and metrics that are dropped, overwritten or wrong.
- `roles`: predictions, labels, and figures with a name.
- `scaling`: features that are scaled with statistics of the evaluation data.
- `seeds`: seeds inside of loops.
- `shared`: data and files of several ranks.
- `shuffles`: tensors and arrays that are shuffled in place.
- `splits`: data of the training and of the evaluation.
- `sums`: sums that go on from report to report.
- `workers`: data sets that the workers of a loader share.
"""
