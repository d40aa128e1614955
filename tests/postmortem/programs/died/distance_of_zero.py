# says: the square root has an infinite slope at 0, and `squared` holds a 0
# says: `squared + 1e-12`
import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)
try:
    torch.manual_seed(0)
    embed = nn.Linear(4, 2)
    a, b = torch.ones(3, 4), torch.ones(3, 4)
    squared = (embed(a) - embed(b)).pow(2).sum(1)
    distance = torch.sqrt(squared)  # related
    distance.mean().backward()  # died: nan-in-backward
finally:
    torch.autograd.set_detect_anomaly(False)
