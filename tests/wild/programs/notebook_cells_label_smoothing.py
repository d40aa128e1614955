"""Flat notebook-like cells: a cell is run again to train longer, warm restarts, label smoothing by hand, evaluation on slices."""
# %%
import torch
from torch import nn, optim
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)

# %%
digits = load_digits()
X = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
Y = torch.tensor(digits.target)
perm = torch.randperm(len(X))
X, Y = X[perm], Y[perm]
X_train, Y_train, X_val, Y_val = X[:1400], Y[:1400], X[1400:], Y[1400:]
X.shape, Y.bincount()

# %%
net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
    nn.Dropout(0.25), nn.Linear(32 * 16, 10),
)
opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
sched = optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=2)
history = []

# %%
def smoothed(logits, target, eps=0.1):
    logp = F.log_softmax(logits, dim=-1)
    return (1 - eps) * F.nll_loss(logp, target) - eps * logp.mean()

def val():
    net.eval()
    right = 0
    with torch.no_grad():
        for i in range(0, len(X_val), 100):
            right += (net(X_val[i:i + 100]).argmax(1) == Y_val[i:i + 100]).sum().item()
    net.train()
    return right / len(X_val)

def run(epochs):
    for e in range(epochs):
        order = torch.randperm(len(X_train))
        for k, i in enumerate(range(0, len(order), 70)):
            b = order[i:i + 70]
            loss = smoothed(net(X_train[b]), Y_train[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step(len(history) + k / 20)
        history.append((loss.item(), val()))
        print(len(history), history[-1])

# %%
print("untrained", val())
run(2)

# %% still getting better: once more
run(2)

# %%
confusion = torch.zeros(10, 10, dtype=torch.long)
net.eval()
with torch.no_grad():
    for t, p in zip(Y_val, net(X_val).argmax(1)):
        confusion[t, p] += 1
print(confusion.diag().sum().item() / confusion.sum().item())
