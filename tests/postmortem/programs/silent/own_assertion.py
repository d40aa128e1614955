import torch

x = torch.ones(2, 3)
assert x.shape == (3, 2), x.shape
