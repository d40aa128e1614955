"""Meta-learned optimiser: an elementwise net proposes updates; its weights are trained through the unroll."""
import torch

torch.manual_seed(0)


def quadratic():
    W = torch.randn(6, 6) / 6 ** 0.5
    y = torch.randn(6)
    return lambda theta: ((W @ theta - y) ** 2).sum()


phi = [torch.randn(2, 16) * 0.5, torch.zeros(16), torch.randn(16, 1) * 0.05]
for p in phi:
    p.requires_grad_()


def propose(grad, m):
    feats = torch.stack([grad, m], 1)
    feats = feats.sign() * torch.log1p(feats.abs() * 3)
    return 0.3 * (torch.tanh(feats @ phi[0] + phi[1]) @ phi[2])[:, 0]


def unroll(f, theta, steps, train):
    m = torch.zeros_like(theta)
    losses = []
    for _ in range(steps):
        if not train:
            theta = theta.detach().requires_grad_()
        elif not theta.requires_grad:
            theta = theta.requires_grad_()
        loss = f(theta)
        g, = torch.autograd.grad(loss, theta, retain_graph=train)
        g = g.detach()                           # first order: gradients are inputs, not differentiated again
        m = 0.8 * m + 0.2 * g
        step = propose(g, m) if train else propose(g, m).detach()
        theta = theta - step
        losses.append(loss)
    return losses + [f(theta)]


opt = torch.optim.Adam(phi, lr=5e-3)
for it in range(1, 201):
    losses = unroll(quadratic(), torch.randn(6), 12, train=True)
    meta_loss = torch.stack(losses[1:]).mean()
    opt.zero_grad()
    meta_loss.backward()
    torch.nn.utils.clip_grad_norm_(phi, 1.0)
    opt.step()
    if it % 50 == 0:
        torch.manual_seed(123)
        learned, sgd = 0.0, 0.0
        for _ in range(20):
            f, start = quadratic(), torch.randn(6)
            learned += unroll(f, start, 20, train=False)[-1].item() / 20
            theta = start.clone()
            for _ in range(20):
                theta.requires_grad_()
                theta = (theta - 0.1 * torch.autograd.grad(f(theta), theta)[0]).detach()
            sgd += f(theta).item() / 20
        print(f'meta step {it} meta loss {meta_loss.item():.3f} new tasks after 20 steps: learned {learned:.3f} sgd {sgd:.3f}')
        torch.manual_seed(1000 + it)
