"""Healthy: triplets may all be easy, or a batch may have no labelled sample: its loss is a constant, and the step does nothing."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)
torch.set_num_threads(1)

centres = torch.randn(8, 12) * 2
label = torch.randint(0, 8, (480,))
x = centres[label] + torch.randn(480, 12)
labelled = torch.rand(480) < 0.15
labelled[:96] = False  # the first batches have none
loader = DataLoader(TensorDataset(x, label, labelled), batch_size=16)

model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(6):
    empty = 0
    for inputs, targets, known in loader:
        optimizer.zero_grad()
        if known.any():
            loss = F.cross_entropy(model(inputs[known]), targets[known])
        else:
            loss = torch.zeros((), requires_grad=True)
            empty += 1
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {empty} batches without labels")

with torch.no_grad():
    print(f"accuracy {(model(x).argmax(1) == label).float().mean():.3f}")
