# says: predictions and targets have other dimensions
# says: bring `label` to (1,)
import torch
import torch.nn.functional as F
from torch import nn

head = nn.Linear(32, 10)
label = torch.tensor(3)  # related
scores = head(torch.randn(1, 32))  # related
loss = F.cross_entropy(scores, label)  # died: shapes-do-not-fit
