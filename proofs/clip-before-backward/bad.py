"""A recurrent network learns whether the numbers of a sequence add up to more than zero."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)


class LastOutput(nn.Module):
    def forward(self, outputs_and_state: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return outputs_and_state[0][:, -1]


def sequences(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(n, 12, 1)
    return x, (x.sum(dim=(1, 2)) > 0).long()


loader = DataLoader(TensorDataset(*sequences(1024)), batch_size=32, shuffle=True)
x_test, y_test = sequences(1000)
model = nn.Sequential(nn.RNN(1, 32, batch_first=True), LastOutput(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for _epoch in range(12):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.1)  # error: clip-before-backward
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    print(f"result: {(model(x_test).argmax(dim=1) == y_test).float().mean().item():.4f}")
