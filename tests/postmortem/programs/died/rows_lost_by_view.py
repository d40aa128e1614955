# says: there are 16 predictions for 64 targets
# says: `logits` (16, 40)
import torch
import torch.nn.functional as F
from torch import nn

head = nn.Linear(32, 10)
hidden, labels = torch.randn(64, 32), torch.randint(0, 10, (64,))  # related
logits = head(hidden).view(16, -1)  # related
loss = F.cross_entropy(logits, labels)  # died: shapes-do-not-fit
