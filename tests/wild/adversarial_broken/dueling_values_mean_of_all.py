"""Values of actions, regressed on returns: the advantages lose the mean over the whole batch, not that of their sample."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
states = torch.randn(640, 6)
taken = torch.randint(0, 3, (640,))
returns = states[:, 0] * (taken - 1) + states[:, 1].abs()


class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.ReLU())
        self.value, self.advantage = nn.Linear(32, 1), nn.Linear(32, 3)

    def forward(self, s):
        h = self.body(s)
        a = self.advantage(h)
        return self.value(h) + a - a.mean()  # error: batch-changes-output


q = Dueling()
optimizer = torch.optim.Adam(q.parameters(), lr=3e-3)
for step in range(80):
    i = torch.randint(0, 640, (32,))
    chosen = q(states[i]).gather(1, taken[i][:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(chosen, returns[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
