"""From a checkpoint to predictions and exports.

trained    `Trained`: the weights, the preprocessing and the settings of a checkpoint, and predictions of files
record     preprocessing and settings in the checkpoints of a run
observed   observations of a supervised run in its checkpoints
answers    predictions with labels and probabilities by name
exporting  exports of a run and of a checkpoint
"""
