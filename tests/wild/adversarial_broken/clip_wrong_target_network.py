"""DQN: the target network is clipped instead of the online one."""
import copy
import random
from collections import deque

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(q)
opt = torch.optim.Adam(q.parameters(), lr=1e-3)
memory = deque(maxlen=500)
state = torch.randn(4)
for t in range(120):
    action = random.randrange(2)
    nxt = torch.randn(4)
    memory.append((state, action, float(state[action] > 0), nxt))
    state = nxt
    if len(memory) < 32:
        continue
    batch = random.sample(memory, 32)
    s, a, r, s2 = (torch.stack([b[0] for b in batch]), torch.tensor([b[1] for b in batch]),
                   torch.tensor([b[2] for b in batch]), torch.stack([b[3] for b in batch]))
    with torch.no_grad():
        goal = r + 0.9 * target(s2).max(1).values
    loss = nn.functional.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), goal)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(target.parameters(), 10.0)  # error: clip-wrong-parameters
    opt.step()
    if t % 20 == 0:
        target.load_state_dict(q.state_dict())
print(loss.item())
