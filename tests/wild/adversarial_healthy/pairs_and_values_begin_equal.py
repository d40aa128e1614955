"""Two results of a call: embeddings that differ, and a policy with values that stay at zero until the first reward."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(4)
KINDS = torch.randn(6, 20)


class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, left, right):
        return self.body(left), self.body(right)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 24), nn.Tanh())
        self.policy, self.value = nn.Linear(24, 3), nn.Linear(24, 1)
        for head in (self.policy, self.value):
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)

    def forward(self, seen):
        hidden = self.body(seen)
        return self.policy(hidden), self.value(hidden).squeeze(1)


net = Twins()
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for step in range(520):
    one, two = torch.randint(0, 6, (2, 64))
    a, b = net(KINDS[one] + 0.3 * torch.randn(64, 20), KINDS[two] + 0.3 * torch.randn(64, 20))
    gap, different = F.pairwise_distance(a, b), (one != two).float()
    loss = ((1 - different) * gap**2 + different * F.relu(2.0 - gap) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print("pairs", loss.item())

agent = Agent()
opt = torch.optim.Adam(agent.parameters(), lr=3e-3)
for step in range(520):
    seen = torch.randn(48, 6)
    logits, value = agent(seen)
    action = torch.distributions.Categorical(logits=logits).sample()
    reward = (action == (seen[:, 0] > 0).long()).float() * (step >= 30)
    chance = F.log_softmax(logits, 1).gather(1, action.unsqueeze(1)).squeeze(1)
    loss = -(chance * (reward - value.detach())).mean() + F.mse_loss(value, reward)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("reward", reward.mean().item())
