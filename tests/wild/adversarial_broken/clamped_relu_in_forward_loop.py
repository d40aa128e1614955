"""The forward of a classifier applies F.relu after every layer, in a loop over all of them: the last one too."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self, sizes=(16, 32, 32, 6)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return x


y = torch.randint(0, 6, (240,))
x = torch.randn(6, 16)[y] + 0.3 * torch.randn(240, 16)
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
net = Net()
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(4):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(net(inputs), labels)  # error: activation-clamps-output
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
