# %% [markdown]
# Mixed-precision training of a MLP regressor with gradient clipping

# %%
import torch
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from torch import nn

torch.manual_seed(0)

# %% data
X, y = make_friedman1(n_samples=1600, n_features=10, noise=1.0, random_state=0)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=400, random_state=0)
mu, sd = X_train.mean(0), X_train.std(0)
t_mu, t_sd = y_train.mean(), y_train.std()
X_train = torch.tensor((X_train - mu) / sd, dtype=torch.float32)
X_val = torch.tensor((X_val - mu) / sd, dtype=torch.float32)
y_train = torch.tensor((y_train - t_mu) / t_sd, dtype=torch.float32).unsqueeze(1)
y_val = torch.tensor((y_val - t_mu) / t_sd, dtype=torch.float32).unsqueeze(1)

# %% model
model = nn.Sequential(
    nn.Linear(10, 64), nn.ReLU(),
    nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, 1),
)
epochs, batch_size, max_norm = 20, 50, 1.0
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 7)
loss_fn = nn.MSELoss()


# %%
def validate():
    model.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        pred = model(X_val)
    err = pred.float() - y_val
    return err.pow(2).mean().item(), err.abs().mean().item() * t_sd


# %%
for epoch in range(epochs):
    model.train()
    order = torch.randperm(len(X_train))
    running = 0.0
    for start in range(0, len(order), batch_size):
        idx = order[start:start + batch_size]
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            pred = model(X_train[idx])
        loss = loss_fn(pred.float(), y_train[idx])
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
        running += loss.item() * len(idx)
    mse, mae = validate()
    print(f"epoch {epoch:2d}  train {running / len(order):.4f}  val mse {mse:.4f}  val mae {mae:.3f}")
