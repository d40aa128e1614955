# says: `loss` holds 8 numbers, but a backward pass begins from one
# says: made with reduction="none"
# says: write `loss.mean().backward()`
import torch
from torch import nn

model = nn.Linear(4, 3)
criterion = nn.CrossEntropyLoss(reduction="none")
for step in range(2):
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    loss = criterion(model(x), y)  # related
    loss.backward()  # died: loss-not-a-number
