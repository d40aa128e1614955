"""DeepSurv: Cox partial likelihood on the whole (sorted) training set each epoch, concordance on held-out patients."""
# %%
import torch
from torch import nn

gen = torch.Generator().manual_seed(12)


def cohort(n):
    cov = torch.rand(n, 4, generator=gen) * 2 - 1
    risk = cov[:, 0] ** 2 * 3 + cov[:, 1]
    time = torch.empty(n).exponential_(1, generator=gen) / risk.exp()
    censor = torch.empty(n).exponential_(0.3, generator=gen)
    event = (time <= censor).float()
    t = torch.minimum(time, censor)
    order = t.argsort(descending=True)
    return cov[order], t[order], event[order]


# %%
def cox(log_hazard, event):
    """Negative log partial likelihood; rows are sorted by falling time, so risk sets are prefixes."""
    log_hazard = log_hazard.flatten()
    return -((log_hazard - log_hazard.logcumsumexp(0)) * event).sum() / event.sum()


def concordance(h, t, e):
    h = h.flatten()
    comparable = (t[:, None] < t[None, :]) & (e[:, None] == 1)
    return ((h[:, None] > h[None, :]) & comparable).sum().item() / comparable.sum().item()


# %%
torch.manual_seed(0)
train, test = cohort(400), cohort(300)
net = nn.Sequential(nn.Linear(4, 24), nn.SELU(), nn.AlphaDropout(0.05), nn.Linear(24, 24), nn.SELU(), nn.Linear(24, 1, bias=False))
optim = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-4)

# %%
for epoch in range(121):
    net.train()
    loss = cox(net(train[0]), train[2])
    optim.zero_grad(); loss.backward(); optim.step()
    if epoch % 40 == 0:
        net.eval()
        with torch.no_grad():
            print(epoch, f"{loss.item():.4f}", f"C-index {concordance(net(test[0]), test[1], test[2]):.3f}")
# %% run the cell above once more with a lower rate
for group in optim.param_groups:
    group["lr"] *= 0.1
for epoch in range(20):
    net.train()
    loss = cox(net(train[0]), train[2])
    optim.zero_grad(); loss.backward(); optim.step()
print("fine-tuned", f"{loss.item():.4f}")
