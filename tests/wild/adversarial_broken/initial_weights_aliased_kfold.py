"""Cross-validation: the weights are meant to be reset before each fold, from a state dict that is not a copy."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(120, 8)
y = (x.sum(1, keepdim=True) > 0).float()
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
initial = model.state_dict()  # error: best-weights-aliased
scores = []
for fold in range(4):
    held_out = torch.arange(len(x)) % 4 == fold
    model.load_state_dict(initial)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for epoch in range(15):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x[~held_out]), y[~held_out]).backward()
        optimizer.step()
    with torch.no_grad():
        scores.append(((model(x[held_out]) > 0) == y[held_out].bool()).float().mean().item())
print(scores)
