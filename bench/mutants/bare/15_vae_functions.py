import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
x = torch.tensor(load_digits().images, dtype=torch.float32).reshape(-1, 64) / 16
x = x[torch.randperm(len(x))]
train_x, valid_x = x[:1500], x[1500:]
D, H, Z = 64, 100, 8


def dense(n_in, n_out):
    w = torch.empty(n_in, n_out)
    torch.nn.init.xavier_uniform_(w)
    return w.requires_grad_(), torch.zeros(n_out, requires_grad=True)


P = {'enc': dense(D, H), 'mu': dense(H, Z), 'logvar': dense(H, Z), 'dec': dense(Z, H), 'out': dense(H, D)}


def lin(name, h):
    w, b = P[name]
    return h @ w + b


def encode(x):
    h = torch.relu(lin('enc', x))
    return lin('mu', h), lin('logvar', h)


def decode(z):
    return lin('out', torch.relu(lin('dec', z)))


def elbo(x):
    mu, logvar = encode(x)
    z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
    rec = F.binary_cross_entropy_with_logits(decode(z), x, reduction='none').sum(1)
    kl = 0.5 * (mu ** 2 + logvar.exp() - 1 - logvar).sum(1)
    return rec.mean(), kl.mean()


opt = torch.optim.Adam([t for pair in P.values() for t in pair], lr=2e-3)
for epoch in range(20):
    beta = min(1.0, epoch / 5)          # KL warm-up
    for xb in train_x[torch.randperm(1500)].split(100):
        rec, kl = elbo(xb)
        loss = rec + beta * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            # the bound itself is an expectation: one sample per image is the usual estimate
            rec, kl = elbo(valid_x)
        print(f'epoch {epoch + 1}: valid -ELBO {(rec + kl).item():.2f} (rec {rec.item():.2f}, kl {kl.item():.2f})')
with torch.no_grad():
    img = torch.sigmoid(decode(torch.randn(1, Z))).reshape(8, 8)
for row in img:
    print(''.join(' .:*#'[min(4, int(v * 5))] for v in row.tolist()))
