# policy steps with a limit of the change: after each pass the change is measured, and beyond the limit the pass is dropped
import torch
from torch import nn
torch.manual_seed(0)
pi = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3)); opt = torch.optim.Adam(pi.parameters(), 2e-2)
W = torch.randn(4, 3)
for it in range(60):
    x = torch.randn(256, 4)
    with torch.no_grad(): old = pi(x).log_softmax(1)
    a = torch.distributions.Categorical(logits=old).sample(); r = (x @ W).softmax(1).gather(1, a[:, None])[:, 0]; adv = r - r.mean()
    for _ in range(10):
        opt.zero_grad()
        new = pi(x).log_softmax(1)
        ratio = (new - old).gather(1, a[:, None])[:, 0].exp()
        loss = -torch.min(ratio * adv, ratio.clamp(.8, 1.2) * adv).mean()
        loss.backward()
        if (old.exp() * (old - new)).sum(1).mean() > .0002: break
        opt.step()
print(r.mean().item())
