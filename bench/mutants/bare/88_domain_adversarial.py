"""Gradient reversal: the domains shall look alike in the features; target labels are only used to score."""
import torch
import torch.nn.functional as F
from sklearn.datasets import make_moons


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


torch.manual_seed(0)


def domain(n, angle, seed):
    x, y = make_moons(n, noise=0.08, random_state=seed)
    x = torch.tensor(x, dtype=torch.float32) - torch.tensor([0.5, 0.25])
    a = torch.tensor(angle) * torch.pi / 180
    rot = torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])])
    return x @ rot.T, torch.tensor(y)


src_x, src_y = domain(600, 0.0, 0)
tgt_x, _ = domain(600, 30.0, 1)
score_x, score_y = domain(400, 30.0, 2)


def experiment(use_adversary):
    g = torch.Generator().manual_seed(1)
    feat = [torch.randn(2, 32, generator=g), torch.zeros(32), torch.randn(32, 16, generator=g) * 0.25, torch.zeros(16)]
    cls = [torch.randn(16, 2, generator=g) * 0.25, torch.zeros(2)]
    dom = [torch.randn(16, 16, generator=g) * 0.25, torch.zeros(16), torch.randn(16, 1, generator=g) * 0.25]
    params = [p.requires_grad_() for p in feat + cls + (dom if use_adversary else [])]

    def features(x):
        return F.relu(F.relu(x @ feat[0] + feat[1]) @ feat[2] + feat[3])

    def domain_logit(h):
        return (F.relu(h @ dom[0] + dom[1]) @ dom[2]).squeeze(1)

    opt = torch.optim.Adam(params, lr=3e-3)
    steps = 300
    for step in range(steps):
        i, j = torch.randint(600, (64,), generator=g), torch.randint(600, (64,), generator=g)
        hs = features(src_x[i])
        loss = F.cross_entropy(hs @ cls[0] + cls[1], src_y[i])
        if use_adversary:
            both = Reverse.apply(torch.cat([hs, features(tgt_x[j])]), 0.3 * step / steps)
            which = torch.cat([torch.zeros(64), torch.ones(64)])
            loss = loss + F.binary_cross_entropy_with_logits(domain_logit(both), which)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        hit = lambda x, y: ((features(x) @ cls[0] + cls[1]).argmax(1) == y).float().mean().item()
        print(f'adversary {use_adversary}: loss {loss.item():.3f} source (training rows) {hit(src_x, src_y):.3f} target {hit(score_x, score_y):.3f}')


experiment(False)
experiment(True)
