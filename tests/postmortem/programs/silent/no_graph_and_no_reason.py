import torch


def loss_of(x):
    return x.pow(2).sum()


loss_of(torch.randn(3)).backward()
