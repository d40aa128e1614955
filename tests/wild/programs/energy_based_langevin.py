"""Healthy: energy-based model (JEM): Langevin dynamics on the inputs of a replay buffer, model frozen and in eval mode meanwhile."""
import torch
import torch.nn as nn
from sklearn.datasets import make_circles

torch.manual_seed(0)
torch.set_num_threads(1)


class JEM(nn.Module):
    """Logits of a classifier; their logsumexp is the negative energy."""

    def __init__(self, n_classes=2):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.class_output = nn.Linear(64, n_classes)

    def forward(self, x, y=None):
        logits = self.classify(x)
        return logits.logsumexp(1) if y is None else torch.gather(logits, 1, y[:, None])

    def classify(self, x):
        return self.class_output(self.f(x))


def init_random(n):
    return torch.FloatTensor(n, 2).uniform_(-2, 2)


def sample_q(f, replay_buffer, batch, n_steps=10, step=0.5, reinit=0.1):
    inds = torch.randint(0, len(replay_buffer), (batch,))
    choose_random = (torch.rand(batch) < reinit).float()[:, None]
    init_sample = choose_random * init_random(batch) + (1 - choose_random) * replay_buffer[inds]
    f.eval()
    x_k = torch.autograd.Variable(init_sample, requires_grad=True)
    for _ in range(n_steps):
        f_prime = torch.autograd.grad(f(x_k).sum(), [x_k])[0]
        x_k.data += step * 0.1 * f_prime + 0.05 * torch.randn_like(x_k)
    f.train()
    final_samples = x_k.detach().clamp(-2, 2)
    replay_buffer[inds] = final_samples
    return final_samples


points, labels = make_circles(1000, noise=0.04, factor=0.5, random_state=0)
points, labels = torch.tensor(points, dtype=torch.float32), torch.tensor(labels)
f = JEM()
optim = torch.optim.Adam(f.parameters(), lr=2e-3, betas=[0.9, 0.999])
replay_buffer = init_random(500)
for i in range(80):
    index = torch.randint(0, len(points), (64,))
    x_lab, y_lab = points[index] + 0.03 * torch.randn(64, 2), labels[index]
    L = 0.0
    x_q = sample_q(f, replay_buffer, 64)
    fp, fq = f(x_lab).mean(), f(x_q).mean()
    l_p_x = -(fp - fq)
    if i % 20 == 0:
        print("P(x) | {}: f(x_p_d)={:>7.3f} f(x_q)={:>7.3f}".format(i, fp, fq))
    L += l_p_x + 0.1 * (fp**2 + fq**2)
    logits = f.classify(x_lab)
    L += nn.CrossEntropyLoss()(logits, y_lab)
    optim.zero_grad()
    L.backward()
    optim.step()
f.eval()
with torch.no_grad():
    print(f"accuracy {(f.classify(points).argmax(1) == labels).float().mean():.3f}, energy gap {(f(points).mean() - f(init_random(500)).mean()):.3f}")
