"""Terms of a loss, by the tape and the source.

loss_source: the source of a loss: terms of a sum, and cuts
terms: terms of a loss without a gradient
derivatives: derivatives without a graph that are added to tensors with one
distances: distances of weights from kept values
divergence: weight of the KL divergence of a variational autoencoder
discrete_terms: terms from choices, such as an argmax, in functions of the file
signed_labels: labels of losses that expect -1 and 1
squashed: logarithms of a sigmoid of a sigmoid
logits: results of models that a loss takes for logits
softmaxes: softmax operations that pick one of many
reduced: weights of samples beside a loss that is averaged already
masked: weights that a softmax gives to masked scores
mask_forms: operations that replace positions, and these behind views
mask_signs: positions that were chosen by values or by chance, not by a mask
overlaps: quotients of two sums of scores, such as dice
"""
