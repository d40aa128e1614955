"""One tabular set, seven targets: Poisson, pinball, ordinal (CORAL), hinge, multi-label soft margin, Tweedie, gamma deviance."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
X = torch.randn(600, 5)
signal = X @ torch.tensor([1.0, -0.5, 0.3, 0.0, 0.0])
counts = torch.poisson(torch.exp(0.5 * signal + 0.5))
amounts = torch.where(torch.rand(600) < 0.4, torch.zeros(600), torch.exp(signal * 0.4 + 0.3 * torch.randn(600)))
grades = torch.bucketize(signal + 0.3 * torch.randn(600), torch.tensor([-1.0, 0.0, 1.0]))
flags = (torch.stack([signal, -signal, X[:, 1], X[:, 3]], 1) > 0).float()
sides = torch.sign(signal)


def pinball(pred, y, q=torch.tensor([0.1, 0.5, 0.9])):
    e = y[:, None] - pred
    return torch.maximum(q * e, (q - 1) * e).sum(1).mean()


def coral(logits, y):
    levels = (y[:, None] > torch.arange(3)).float()
    return -(F.logsigmoid(logits) * levels + (F.logsigmoid(logits) - logits) * (1 - levels)).sum(1).mean()


def tweedie(mu, y, p=1.5):
    return (-y * mu.pow(1 - p) / (1 - p) + mu.pow(2 - p) / (2 - p)).mean()


class Coral(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(5, 1, bias=False)
        self.b = nn.Parameter(torch.tensor([0.5, 0.0, -0.5]))

    def forward(self, x):
        return self.w(x) + self.b


tasks = {
    "poisson": (nn.Linear(5, 1), lambda o: F.poisson_nll_loss(o.squeeze(1), counts, log_input=True, full=True)),
    "pinball": (nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3)), lambda o: pinball(o, signal + counts)),
    "coral": (Coral(), lambda o: coral(o, grades)),
    "hinge": (nn.Linear(5, 1), lambda o: torch.relu(1 - o.view(-1) * sides).mean()),
    "softmargin": (nn.Linear(5, 1), lambda o: F.soft_margin_loss(o.view(-1), sides)),
    "multilabel": (nn.Linear(5, 4), lambda o: F.multilabel_soft_margin_loss(o, flags)),
    "tweedie": (nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1), nn.Softplus()), lambda o: tweedie(o.squeeze(1) + 1e-3, amounts)),
    "gamma": (nn.Linear(5, 1), lambda o: (amounts[amounts > 0] * (-o.squeeze(1)[amounts > 0]).exp() + o.squeeze(1)[amounts > 0]).mean()),
}
for name, (model, objective) in tasks.items():
    opt = torch.optim.Rprop(model.parameters(), lr=0.01)
    history = []
    for _ in range(40):
        opt.zero_grad()
        loss = objective(model(X))
        loss.backward()
        opt.step()
        history.append(loss.item())
    print(f"{name:>10}: {history[0]:8.4f} -> {history[-1]:8.4f}")
