# says: `attention`, an output of softmax, was overwritten
# says: `attention = attention.clone()`
import torch
from torch import nn

torch.manual_seed(0)
query = nn.Linear(16, 16)
key = nn.Linear(16, 16)
x = torch.randn(2, 5, 16)
scores = query(x) @ key(x).transpose(1, 2)
attention = scores.softmax(-1)
mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
attention[:, mask] = 0.0  # related
out = attention @ x
out.pow(2).mean().backward()  # died: modified-in-place
