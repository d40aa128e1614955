"""Words in the names of variables and functions: parts of the data, numbers that are chosen, figures."""

from __future__ import annotations

import functools
import re

TEST = frozenset({"test", "te", "tst"})
FOR_CHOICE = frozenset({"dev", "va", "val", "valid", "validation", "vld"})
OTHER = FOR_CHOICE | {
    "train", "training", "tr", "trn", "fit", "cal", "calib", "calibration", "calibrated", "tune", "tuning", "oof",
    "fold", "folds", "cv", "source", "inner", "adapt", "support", "fake", "synthetic", "hold", "held", "holdout",
    "blend", "select",
}  # fmt: skip
NO_PARTS = frozenset({"transform", "tf", "aug", "tta", "mode", "time", "fn", "batch", "size"})
"""Words in the names of settings."""
NUMBERS = frozenset({
    "threshold", "thresholds", "thresh", "thr", "thrs", "cutoff", "cutoffs", "platt", "isotonic", "calibrator",
})  # fmt: skip
"""Words of chosen numbers."""
SHARES = frozenset({
    "weight", "blend", "alpha", "ensemble", "mix", "temp", "temperature", "temperatures", "tau", "calibration", "calib",
})  # fmt: skip
"""Words of other numbers, which count beside a verb only."""
VERBS = frozenset({
    "best", "choose", "find", "fit", "tune", "optimal", "optimize", "optimise", "search", "select", "pick", "learn",
    "calibrate", "sweep", "optimum",
})  # fmt: skip
FIGURES = frozenset({
    "acc", "accuracy", "f1", "auc", "auroc", "precision", "recall", "loss", "error", "ece", "metric", "metrics",
    "brier", "report", "mcc", "nll", "ap",
})  # fmt: skip
GAINS = frozenset({"acc", "accuracy", "f1", "auc", "auroc", "precision", "recall", "mcc", "ap", "score", "fbeta"})
LOSSES = frozenset({"loss", "error", "ece", "brier", "nll", "entropy", "mse", "mae", "rmse"})
WORST = frozenset({
    "worst", "hard", "harder", "hardest", "weak", "weaker", "weakest", "low", "lower", "lowest", "poorest",
})  # fmt: skip
CONVERSIONS = frozenset({"to", "un", "denorm", "denormalize", "denormalise", "inverse", "unscale"})
EVALUATES = frozenset({"evaluate", "eval", "evaluation", "test", "score", "scores", "report", "measure"}) | FIGURES
SHOWS = frozenset({"plot", "scatter", "hist", "plt", "ax", "axes", "axvline", "axhline", "draw", "show", "fig", "sns"})
BATCHES = frozenset({"loader", "dataloader", "dl", "ds", "dataset", "set", "data", "batches", "iter", "testloader"})
OPEN = re.compile(
    r"oracle|upper|bound|ideal|optimis|possible|ceiling|hindsight|leak|cheat|achiev|attain|maximal|headroom|diagnos|"
    r"sanity|illustrat|reference|corp(?!us)|decompos|mcb|dsc|reliability|miscalib|eer|(?:fpr|tpr)_?\d|"
    r"at_?(?:tpr|fpr|recall|precision|far|frr|fnr)|\bbest\b.{0,20}\bon\b.{0,8}\btest\b|\btuned\b.{0,16}\btest\b",
    re.IGNORECASE,
)
"""Words by which a program calls such a figure an upper bound, or which belong to figures at a fixed level."""
ARGUMENTS_OF_BEST = frozenset({"argmax", "argmin", "nanargmax", "nanargmin", "idxmax", "idxmin"})
MINIMISERS = frozenset({"minimize", "minimize_scalar", "brute", "fmin", "brent", "golden", "differential_evolution"})
MODELS = frozenset({
    "model", "models", "net", "network", "clf", "classifier", "detector", "trainer", "learner", "encoder", "scaler",
    "prep", "preprocessor", "vocab", "module", "self", "device", "criterion", "estimator", "predictor", "regressor",
})  # fmt: skip
"""Words of variables that are made with the training data, without being a part of them."""
_WORD = re.compile(r"f1|[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def of_part(name: str) -> str:
    """Return "test" or "choice" for a variable with the name of such a part of the data; "" for others.

    >>> of_part("x_test"), of_part("val_loader"), of_part("test_val"), of_part("x")
    ('test', 'choice', '', '')
    """
    words = words_of(name)
    found = [part for part, its in (("test", TEST), ("choice", FOR_CHOICE)) if words & its]
    return found[0] if len(found) == 1 else ""


@functools.lru_cache(maxsize=4096)
def words_of(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name))
