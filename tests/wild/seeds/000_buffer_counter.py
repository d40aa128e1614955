"""From "PyTorch Training", section nn.Module: a buffer that counts the calls.

Repaired: lost indentation; imports; a short loop. Expected: nothing; a counter that moves in evaluation too is healthy.
"""
import torch
import torch.nn as nn

torch.set_num_threads(1)


class ModelWithState(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(10, 10)
        self.register_buffer('running_count', torch.zeros(1))

    def forward(self, x):
        self.running_count += 1  # tracked in state_dict, moves with .to()
        return self.linear(x)


model = ModelWithState()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 10)).pow(2).mean()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    model(torch.randn(8, 10))
print(model.state_dict()['running_count'])
