# says: `embed` looks rows up by whole numbers and was given float32
import torch
from torch import nn

embed = nn.Embedding(10, 4)
tokens = torch.tensor([1.0, 2.0])  # related
embed(tokens)  # died: different-types
