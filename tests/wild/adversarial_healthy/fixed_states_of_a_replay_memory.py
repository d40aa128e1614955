# DQN: preallocated replay memory; the mean Q of a fixed set of states is tracked
import torch, random
from torch import nn
torch.manual_seed(0); random.seed(0)
cap = 4000
S = torch.zeros(cap, 4); A = torch.zeros(cap, dtype=torch.long); R = torch.zeros(cap); S2 = torch.zeros(cap, 4); D = torch.zeros(cap)
q = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2)); tq = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
tq.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), 1e-3)
def reset(): return 0.1 * torch.randn(4)
def envstep(s, a):
    f = 1.0 if a else -1.0
    s2 = s + 0.05 * torch.stack([s[1], f + .5 * s[2], s[3], 2 * s[2] - f]) + .005 * torch.randn(4)
    d = bool(s2[2].abs() > .5 or s2[0].abs() > 2)
    return s2, 1.0, d
s, size, pos = reset(), 0, 0
fixed = None
for step in range(1600):
    eps = max(.05, 1 - step / 800)
    if random.random() < eps: a = random.randrange(2)
    else:
        with torch.no_grad(): a = int(q(s[None]).argmax())
    s2, r, d = envstep(s, a)
    S[pos], A[pos], R[pos], S2[pos], D[pos] = s, a, r, s2, float(d)
    pos = (pos + 1) % cap; size = min(size + 1, cap)
    s = reset() if d else s2
    if size == 800: fixed = S[544:800].clone()
    if size >= 300:
        i = torch.randint(0, size, (64,))
        with torch.no_grad():
            y = R[i] + .97 * (1 - D[i]) * tq(S2[i]).max(1).values
        loss = nn.functional.smooth_l1_loss(q(S[i]).gather(1, A[i, None])[:, 0], y)
        opt.zero_grad(); loss.backward(); opt.step()
        if step % 50 == 0: tq.load_state_dict(q.state_dict())
        if step % 100 == 0 and fixed is not None:
            q.eval()
            with torch.no_grad():
                print(step, "mean Q", q(fixed).max(1).values.mean().item())
            q.train()
