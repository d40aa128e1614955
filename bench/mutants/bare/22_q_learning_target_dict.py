import collections
import random
import torch

random.seed(1)
torch.manual_seed(1)
SIZE = 5
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


def env_step(state, a):
    r, c = divmod(state, SIZE)
    dr, dc = MOVES[a]
    r, c = min(max(r + dr, 0), SIZE - 1), min(max(c + dc, 0), SIZE - 1)
    nxt = r * SIZE + c
    if nxt == SIZE * SIZE - 1:
        return nxt, 1.0, True
    return nxt, -0.01, False


def one_hot(s):
    return torch.nn.functional.one_hot(torch.as_tensor(s), SIZE * SIZE).float()


def q_values(p, s):
    h = torch.relu(one_hot(s) @ p['w1'] + p['b1'])
    return h @ p['w2'] + p['b2']


online = {'w1': torch.randn(25, 32) * 0.2, 'b1': torch.zeros(32), 'w2': torch.randn(32, 4) * 0.1, 'b2': torch.zeros(4)}
for t in online.values():
    t.requires_grad_(True)
target = {k: v.detach().clone() for k, v in online.items()}

memory = collections.deque(maxlen=2000)
opt = torch.optim.Adam(list(online.values()), lr=5e-3)
updates, eps, lengths = 0, 1.0, []
for episode in range(60):
    s, done, t = 0, False, 0
    while not done and t < 60:
        if random.random() < eps:
            a = random.randrange(4)
        else:
            with torch.no_grad():
                a = q_values(online, s).argmax().item()
        s2, r, done = env_step(s, a)
        memory.append((s, a, r, s2, float(done)))
        s, t = s2, t + 1
        if len(memory) < 64:
            continue
        bs, ba, br, bs2, bd = zip(*random.sample(memory, 32))
        ba, br, bd = torch.tensor(ba), torch.tensor(br), torch.tensor(bd)
        with torch.no_grad():
            y = br + 0.95 * (1 - bd) * q_values(target, bs2).max(1).values
        q = q_values(online, bs).gather(1, ba[:, None])[:, 0]
        loss = torch.nn.functional.smooth_l1_loss(q, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        updates += 1
        if updates % 50 == 0:
            target = {k: v.detach().clone() for k, v in online.items()}
    eps = max(0.05, eps * 0.93)
    lengths.append(t)
    if episode % 15 == 14:
        print(f'episode {episode + 1} mean length {sum(lengths[-15:]) / 15:.1f} eps {eps:.2f}')

s, path = 0, [0]
with torch.no_grad():
    while s != 24 and len(path) < 20:
        s, _, _ = env_step(s, q_values(online, s).argmax().item())
        path.append(s)
print('greedy path', path)
