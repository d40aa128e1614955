"""Broken: one of two attention layers forgets to initialise its vector; both initialise their weights by `.data`."""
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Attention(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        nn.init.xavier_uniform_(self.weight.data, gain=1.414)
        self.a = nn.Parameter(torch.empty(2 * outputs, 1))  # error: parameters-not-initialised

    def forward(self, x):
        h = x.view(-1, 8, 8) @ self.weight
        pairs = torch.cat([h.repeat_interleave(8, 1), h.repeat(1, 8, 1)], 2)
        scores = nn.functional.leaky_relu(pairs @ self.a).view(-1, 8, 8)
        return torch.softmax(scores, 2) @ h


class Pooling(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.weight.data.normal_(0, 0.1)
        self.a = nn.Parameter(torch.empty(outputs, 1))
        nn.init.xavier_normal_(self.a.data, gain=1.414)

    def forward(self, x):
        h = x.view(-1, 8, 8) @ self.weight
        return torch.softmax(h @ self.a, 1) * h


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = Attention(8, 16), Pooling(8, 16), nn.Linear(128, 10)

    def forward(self, x):
        return self.head((self.first(x) + self.second(x)).flatten(1))


digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
earlier = [torch.randn(32, 1) * 3 for _ in range(500)]
del earlier
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(3):
    for rows in torch.randperm(1200).split(64):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
