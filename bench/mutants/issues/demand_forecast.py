# Forecast a (synthetic) monthly demand series with a small hand-written MLP.
# Notebook exported to a script.
import numpy as np
import torch

torch.manual_seed(0)
rng = np.random.default_rng(0)

# In[1]: the series: trend + season + noise, the level shifts late in the record
months = np.arange(600)
level = 20 + 0.03 * months + 14 / (1 + np.exp(-(months - 480) / 25))
series = level + 8 * np.sin(2 * np.pi * months / 12) + rng.normal(0, 1.5, size=months.size)

# In[2]: chronological split, min-max scaling
LOOKBACK = 18
split = 440
train_raw, test_raw = series[:split], series[split - LOOKBACK:]
lo, hi = train_raw.min(), train_raw.max()


def scale(a):
    return (a - lo) / (hi - lo)


def unscale(a):
    return a * (hi - lo) + lo


def windows(a):
    a = torch.tensor(scale(a), dtype=torch.float32)
    x = a.unfold(0, LOOKBACK + 1, 1)
    return x[:, :-1].clone(), x[:, -1].clone()


x_train, y_train = windows(train_raw)
x_test, y_test = windows(test_raw)
print('train windows', tuple(x_train.shape), 'test windows', tuple(x_test.shape))

# In[3]: parameters and model
H = 32
W1 = torch.randn(LOOKBACK, H) / LOOKBACK ** 0.5
b1 = torch.zeros(H)
W2 = torch.randn(H, 1) / H ** 0.5
b2 = torch.zeros(1)
params = [W1, b1, W2, b2]
for p in params:
    p.requires_grad_(True)


def model(x):
    return (torch.tanh(x @ W1 + b1) @ W2 + b2)[:, 0]


# In[4]: training
velocity = [torch.zeros_like(p) for p in params]
lr, beta, batch = 0.05, 0.9, 32
for epoch in range(150):
    order = torch.randperm(len(x_train))
    epoch_loss = 0.0
    for k in range(0, len(order), batch):
        idx = order[k:k + batch]
        loss = (model(x_train[idx]) - y_train[idx]).pow(2).mean()
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            for p, v, g in zip(params, velocity, grads):
                v.mul_(beta).add_(g)
                p.sub_(lr * v)
        epoch_loss += loss.item() * len(idx)
    if (epoch + 1) % 30 == 0:
        print(f'epoch {epoch + 1}: train mse (scaled) {epoch_loss / len(order):.5f}')

# In[5]: one-step-ahead evaluation in original units
with torch.no_grad():
    pred = unscale(model(x_test)).numpy()
truth = series[split:]
rmse = np.sqrt(np.mean((pred - truth) ** 2))
naive = np.sqrt(np.mean((series[split - 12:-12] - truth) ** 2))
print(f'one-step RMSE {rmse:.3f} (seasonal naive {naive:.3f})')
