"""A critic that is hidden on purpose, as in DDPG: the actor's loss goes through the slow (EMA) critic in a list; EMA is moved by lerp_."""

import copy, torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))


class Actor(nn.Module):
    def __init__(self, critic):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2), nn.Tanh())
        self.slow = [copy.deepcopy(critic)]  # not a part of the policy that is saved

    def forward(self, x):
        return self.body(x)

    def loss(self, x):
        a = self(x)
        return -self.slow[0](torch.cat([x, a], 1)).mean()

    @torch.no_grad()
    def follow(self, critic, tau=0.05):
        for q, p in zip(self.slow[0].parameters(), critic.parameters()):
            q.lerp_(p, tau)


actor = Actor(critic)
oa = torch.optim.Adam(actor.parameters(), 1e-3)
oc = torch.optim.Adam(critic.parameters(), 3e-3)
W = torch.randn(4, 2).tanh()
for step in range(200):
    x = torch.randn(64, 4)
    a = torch.rand(64, 2) * 2 - 1
    r = -(a - torch.tanh(x @ W)).pow(2).sum(1, keepdim=True)
    lc = F.mse_loss(critic(torch.cat([x, a], 1)), r)
    oc.zero_grad()
    lc.backward()
    oc.step()
    la = actor.loss(x)
    oa.zero_grad()
    la.backward()
    oa.step()
    actor.follow(critic)
print(lc.item(), la.item())
