"""Forward-Forward: each layer has its own optimizer and loss; inputs to the next layer are detached."""
import torch
from torch import nn

torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = nn.Linear(i, o)
        self.opt = torch.optim.Adam(self.parameters(), lr=1e-2)

    def forward(self, x):
        return torch.relu(self.fc(x / (x.norm(dim=1, keepdim=True) + 1e-4)))

    def learn(self, positive, negative):
        good_p = self(positive).pow(2).mean(1)
        good_n = self(negative).pow(2).mean(1)
        loss = torch.nn.functional.softplus(torch.cat([1 - good_p, good_n - 1])).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return self(positive).detach(), self(negative).detach(), loss.item()


layers = [Layer(10, 32), Layer(32, 32)]
for step in range(25):
    p, n = torch.randn(32, 10) + 1, torch.randn(32, 10) - 1
    for layer in layers:
        p, n, value = layer.learn(p, n)
print(value)
