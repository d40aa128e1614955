"""Cross-entropy of scores and classes, and its backward pass."""

import torch
from softmax import log_softmax, softmax


def cross_entropy(logits, targets):
    """Return the mean of -log p(right class), for scores that are not normalised.

        loss = mean over the batch of  log sum_j exp(x_j) - x_target

    Logits go in, not probabilities: softmax is inside.

    Args:
        logits: scores, (batch, classes).
        targets: the right classes, integers, (batch,).

    Source: Goodfellow, Bengio and Courville, Deep Learning (2016), 6.2.2.3.

    >>> cross_entropy(torch.zeros(4, 10), torch.arange(4))  # knowing nothing costs ln 10
    tensor(2.3026)
    """
    return -log_softmax(logits)[torch.arange(len(targets)), targets].mean()


def cross_entropy_backward(logits, targets):
    """Return the gradient of the logits: predicted minus true probabilities.

        dL/dx = (softmax(x) - onehot(target)) / batch

    >>> cross_entropy_backward(torch.zeros(1, 4), torch.tensor([2]))
    tensor([[ 0.2500,  0.2500, -0.7500,  0.2500]])
    """
    gradient = softmax(logits)
    gradient[torch.arange(len(targets)), targets] -= 1
    return gradient / len(targets)
