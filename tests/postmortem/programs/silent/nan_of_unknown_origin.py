import torch


def loss_of(w):
    return (w * 0).sqrt().sum() * 1.0


with torch.autograd.detect_anomaly():
    loss_of(torch.ones(3, requires_grad=True)).backward()
