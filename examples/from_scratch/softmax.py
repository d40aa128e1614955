"""Softmax, and its logarithm."""

import torch


def softmax(x):
    """Turn the scores of the last dimension into probabilities.

        softmax(x)_i = exp(x_i) / sum_j exp(x_j)

    Adding the same number to all scores changes nothing, so the largest is subtracted first: exp() of a score of 1000
    is infinite, and infinite / infinite is NaN.

    Source: Bridle, Probabilistic interpretation of feedforward classification network outputs (1990).

    >>> softmax(torch.tensor([1000.0, 1000.0]))
    tensor([0.5000, 0.5000])
    """
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def log_softmax(x):
    """Return the logarithm of softmax(x), without the detour over probabilities.

        log softmax(x)_i = x_i - log sum_j exp(x_j)

    A probability of 1e-50 is 0 in float32, and log(0) is minus infinity; its logarithm, -115, is a number like any
    other. The sum is computed with the log-sum-exp trick: m + log sum_j exp(x_j - m), where m is the largest score.

    >>> log_softmax(torch.tensor([0.0, 115.0]))
    tensor([-115.,    0.])
    """
    largest = x.amax(dim=-1, keepdim=True)
    log_sum_exp = largest + torch.log(torch.exp(x - largest).sum(dim=-1, keepdim=True))
    return x - log_sum_exp
