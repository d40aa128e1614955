"""Two discrete autoencoders: VQ with an EMA codebook in buffers and dead-code restarts, and Gumbel-softmax with annealing."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class EMACodebook(nn.Module):
    def __init__(self, k, d, decay=0.9):
        super().__init__()
        self.decay = decay
        self.register_buffer("embed", torch.randn(k, d))
        self.register_buffer("count", torch.ones(k))
        self.register_buffer("total", self.embed.clone())

    def forward(self, z):
        code = torch.cdist(z, self.embed).argmin(1)
        q = self.embed[code]
        if self.training:
            with torch.no_grad():
                hot = F.one_hot(code, len(self.embed)).float()
                self.count.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
                self.total.mul_(self.decay).add_(hot.T @ z, alpha=1 - self.decay)
                self.embed.copy_(self.total / self.count.clamp(min=1e-3).unsqueeze(1))
                dead = self.count < 0.05
                if dead.any():
                    pick = z[torch.randint(0, len(z), (int(dead.sum()),))]
                    self.embed[dead], self.total[dead], self.count[dead] = pick, pick, 1.0
        return z + (q - z).detach(), F.mse_loss(z, q.detach()), code


class VQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.book, self.dec = nn.Linear(10, 4), EMACodebook(8, 4), nn.Linear(4, 10)

    def forward(self, x):
        z, commit, code = self.book(self.enc(x))
        return self.dec(z), 0.25 * commit, code


class Gumbel(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(10, 8), nn.Linear(8, 10, bias=False)
        self.tau = 1.0

    def forward(self, x):
        logits = self.enc(x)
        hard = F.gumbel_softmax(logits, self.tau, hard=True) if self.training else F.one_hot(logits.argmax(1), 8).float()
        prior = (logits.softmax(1) * (logits.log_softmax(1) + torch.log(torch.tensor(8.0)))).sum(1).mean()
        return self.dec(hard), 1e-3 * prior, logits.argmax(1)


torch.manual_seed(0)
centres = torch.randn(6, 10) * 2
draw = lambda n: centres[torch.randint(0, 6, (n,))] + 0.1 * torch.randn(n, 10)
for model in (VQ(), Gumbel()):
    opt = torch.optim.Adam(model.parameters(), lr=2e-2)
    for step in range(150):
        x = draw(64)
        out, extra, _ = model(x)
        loss = F.mse_loss(out, x) + extra
        opt.zero_grad()
        loss.backward()
        opt.step()
        if isinstance(model, Gumbel):
            model.tau = max(0.3, model.tau * 0.99)
        if step % 50 == 0:
            print(type(model).__name__, step, round(loss.item(), 4))
    model.eval()
    with torch.no_grad():
        out, _, code = model(draw(300))
    print(type(model).__name__, round(loss.item(), 4), "codes used", code.unique().numel())
