"""A model of characters in plain tensors: the list of all parameters exists, and the optimizer gets three of five."""
import torch
from torch.nn import functional as F

torch.manual_seed(0)
text = ("the cat sat on the mat and the dog sat on the log " * 20).strip()
letters = sorted(set(text))
codes = torch.tensor([letters.index(one) for one in text])
contexts = codes.unfold(0, 4, 1)
inputs, targets = contexts[:, :3], contexts[:, 3]
table = torch.randn(len(letters), 6)
W1, b1 = torch.randn(18, 40) * 0.2, torch.randn(40) * 0.01
W2, b2 = torch.randn(40, len(letters)) * 0.1, torch.randn(len(letters)) * 0.5
parameters = [table, W1, b1, W2, b2]
for p in parameters:
    p.requires_grad_()
optimizer = torch.optim.AdamW([table, W1, W2], lr=0.01)  # error: parameters-not-optimized
for step in range(200):
    rows = torch.randint(0, 700, (32,))
    hidden = torch.tanh(table[inputs[rows]].view(32, 18) @ W1 + b1)
    loss = F.cross_entropy(hidden @ W2 + b2, targets[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
