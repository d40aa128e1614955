import math
import torch

torch.manual_seed(0)
K = 5


def toy(n):
    t = torch.rand(n, 1)
    x = t + 0.3 * torch.sin(2 * math.pi * t) + 0.05 * torch.randn(n, 1)
    return x, t                                          # the inverse problem: many t for one x


x_train, t_train = toy(1200)
x_val, t_val = toy(400)


def init_mdn(hidden=32):
    return (torch.randn(1, hidden) * 2, torch.randn(hidden), torch.randn(hidden, 3 * K) * 0.2,
            torch.cat([torch.zeros(K), torch.linspace(0, 1, K), torch.full((K,), -1.0)]))


mdn = tuple(p.requires_grad_() for p in init_mdn())


def components(p, x):
    h = torch.tanh(x @ p[0] + p[1])
    logit, mu, log_sigma = (h @ p[2] + p[3]).split(K, dim=1)
    return torch.log_softmax(logit, 1), mu, log_sigma.clamp(min=-5)


def nll(p, x, t):
    log_pi, mu, log_sigma = components(p, x)
    log_n = -0.5 * ((t - mu) / log_sigma.exp()) ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(log_pi + log_n, 1).mean()


optimizer = torch.optim.Adam(mdn, lr=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.5)
for epoch in range(40):
    order = torch.randperm(len(x_train))
    for rows in order.split(120):
        optimizer.zero_grad()
        loss = nll(mdn, x_train[rows], t_train[rows])
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 10 == 9:
        with torch.no_grad():
            print(f'epoch {epoch + 1} train nll {loss.item():.3f} val nll {nll(mdn, x_val, t_val).item():.3f}')

with torch.no_grad():
    log_pi, mu, log_sigma = components(mdn, torch.tensor([[0.5]]))
    pick = torch.multinomial(log_pi.exp()[0], 500, replacement=True)
    draws = mu[0, pick] + log_sigma[0, pick].exp() * torch.randn(500)
print('t given x = 0.5: quantiles', [round(v, 2) for v in draws.quantile(torch.tensor([0.1, 0.5, 0.9])).tolist()])
