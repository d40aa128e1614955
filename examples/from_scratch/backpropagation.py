"""Backpropagation, as in `loss.backward()`, written out for a perceptron of two layers."""

from cross_entropy import cross_entropy, cross_entropy_backward
from linear import linear_backward
from relu import relu, relu_backward


def backward(x, y, first, second):
    """Compute the loss of second(relu(first(x))), and add its gradients to those of both layers.

    Forward from the input to the loss, keeping the values that the way back needs; back from the loss to the input, one
    line for each line of the forward pass, in reverse order. That is the chain rule, and all of backpropagation.

    Args:
        x: inputs, (batch, in_features).
        y: the right classes, integers, (batch,).
        first: a layer with weight and bias, in_features to hidden.
        second: a layer with weight and bias, hidden to classes.

    Source: Rumelhart, Hinton and Williams, Learning representations by back-propagating errors (Nature 323, 1986).
    """
    h = x @ first.weight.T + first.bias
    a = relu(h)
    logits = a @ second.weight.T + second.bias
    loss = cross_entropy(logits, y)

    grad_logits = cross_entropy_backward(logits, y)
    grad_a, grad_weight, grad_bias = linear_backward(a, second.weight, grad_logits)
    add(second, grad_weight, grad_bias)
    grad_h = relu_backward(h, grad_a)
    _, grad_weight, grad_bias = linear_backward(x, first.weight, grad_h)
    add(first, grad_weight, grad_bias)
    return loss


def add(layer, grad_weight, grad_bias):
    """Add to the existing gradients, as torch does: clear them before to get those of this batch alone."""
    for p, gradient in (layer.weight, grad_weight), (layer.bias, grad_bias):
        p.grad = gradient if p.grad is None else p.grad + gradient
