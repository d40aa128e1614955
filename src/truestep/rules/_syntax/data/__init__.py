"""Data of a training, its results and metrics.

- `loaders`: loaders and samplers.
- `results`: results and metrics that are dropped, overwritten or wrong.
- `scaling`: features that are scaled with statistics of the evaluation data.
- `seeds`: seeds inside of loops.
- `shared`: data and files of several ranks.
- `splits`: data of the training and of the evaluation.
- `workers`: data sets that the workers of a loader share.
"""
