"""BPR on implicit feedback, leave-one-out: the last item of each user is held out."""
import torch
import torch.nn.functional as F

g = torch.Generator().manual_seed(3)
n_users, n_items, k = 250, 150, 6
taste = torch.randn(n_users, k, generator=g)
style = torch.randn(n_items, k, generator=g)
affinity = (taste @ style.T) * 1.2 + 0.8 * torch.randn(n_items, generator=g)
history = torch.multinomial(affinity.softmax(1), 13, replacement=False, generator=g)
train_items, held_out = history[:, :12], history[:, 12]
seen = torch.zeros(n_users, n_items, dtype=torch.bool)
seen.scatter_(1, train_items, True)

P = (torch.randn(n_users, 8, generator=g) * 0.1).requires_grad_()
Q = (torch.randn(n_items, 8, generator=g) * 0.1).requires_grad_()
item_bias = torch.zeros(n_items, requires_grad=True)


def score(u, i):
    return (P[u] * Q[i]).sum(-1) + item_bias[i]


@torch.no_grad()
def hit_rate(at=10):
    all_scores = P @ Q.T + item_bias
    all_scores = all_scores.masked_fill(seen, float('-inf'))
    top = all_scores.topk(at, dim=1).indices
    return (top == held_out[:, None]).any(1).float().mean().item()


users = torch.arange(n_users).repeat_interleave(12)
positives = train_items.flatten()
opt = torch.optim.Adam([P, Q, item_bias], lr=0.02)
print(f'untrained hit@10 {hit_rate():.3f} (chance {10 / (n_items - 12):.3f})')
for epoch in range(20):
    order = torch.randperm(len(users), generator=g)
    total = 0.0
    for rows in order.split(250):
        u, i = users[rows], positives[rows]
        j = torch.randint(n_items, i.shape, generator=g)
        clash = seen[u, j]
        while clash.any():                              # a negative must not be a seen item
            j[clash] = torch.randint(n_items, (int(clash.sum()),), generator=g)
            clash = seen[u, j]
        reg = P[u].pow(2).sum(1) + Q[i].pow(2).sum(1) + Q[j].pow(2).sum(1)
        loss = -F.logsigmoid(score(u, i) - score(u, j)).mean() + 0.02 * reg.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 12
    if epoch % 5 == 4:
        print(f'epoch {epoch + 1} bpr loss {total:.4f} hit@10 {hit_rate():.3f}')
