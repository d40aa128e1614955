"""Calls of losses.

loss: the probe of losses
advantages: factors of log-probabilities with a gradient to the values that the loss trains
classes: labels of the training
counted_targets: padding in losses that the program weights by hand
data_targets: targets that the source shows to be data
followed_targets: targets with a gradient to the model, as in Q-learning
label_counts: labels by class, and weights of classes
label_values: values of targets
own_targets: targets that are the input of their loss
paired_scores: scores between samples, with partners as classes
shares: inputs and targets that sum to one, over the classes or over the samples
target_range: targets beyond the reach of predictions
transcripts: inputs and targets of the CTC loss
target_sums: sums of the targets of regressions and binary losses
"""
