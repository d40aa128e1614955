"""House values in California with a small network made of plain tensors.

No modules and no optimizer: the parameters are a list, the update is SGD with momentum and decoupled weight decay,
written out. Training stops when the validation error has not improved for a while.
"""

import csv
import os
from pathlib import Path

import torch

DATA = Path(os.environ["TRUESTEP_DATA"])
NUMERIC = ["longitude", "latitude", "housing_median_age", "rooms", "bedrooms", "people", "median_income"]
PLACES = ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"]


def read_rows():
    with open(DATA / "housing" / "housing.csv") as f:
        table = list(csv.DictReader(f))
    x, y = [], []
    for row in table:
        homes = float(row["households"])
        bedrooms = float(row["total_bedrooms"]) / homes if row["total_bedrooms"] else float("nan")
        numbers = [float(row["longitude"]), float(row["latitude"]), float(row["housing_median_age"])]
        numbers += [float(row["total_rooms"]) / homes, bedrooms, float(row["population"]) / homes]
        numbers += [float(row["median_income"])]
        place = [float(row["ocean_proximity"] == name) for name in PLACES]
        x.append(numbers + place)
        y.append(float(row["median_house_value"]) / 1e5)
    return torch.tensor(x), torch.tensor(y).unsqueeze(1)


def fit_scaler(x, y):
    """Medians for the gaps, and means and deviations of inputs and log target, of the rows given."""
    k = len(NUMERIC)
    median = x[:, :k].nanmedian(dim=0).values
    filled = torch.where(x[:, :k].isnan(), median, x[:, :k])
    filled[:, 3:6] = filled[:, 3:6].log()
    log_y = y.log()
    return {
        "median": median,
        "mean": filled.mean(dim=0),
        "std": filled.std(dim=0),
        "y_mean": log_y.mean(),
        "y_std": log_y.std(),
    }


def scale_inputs(x, s):
    k = len(NUMERIC)
    numbers = torch.where(x[:, :k].isnan(), s["median"], x[:, :k])
    numbers[:, 3:6] = numbers[:, 3:6].log()
    numbers = (numbers - s["mean"]) / s["std"]
    return torch.cat([numbers, x[:, k:]], dim=1)


def init_params(sizes, generator):
    params = []
    for fan_in, fan_out in zip(sizes[:-1], sizes[1:]):
        w = torch.randn(fan_in, fan_out, generator=generator) * (2 / fan_in) ** 0.5
        params += [w.requires_grad_(), torch.zeros(fan_out, requires_grad=True)]
    return params


def predict(params, x, drop=0.0):
    h = x
    n_layers = len(params) // 2
    for i in range(n_layers):
        h = h @ params[2 * i] + params[2 * i + 1]
        if i < n_layers - 1:
            h = torch.relu(h)
            if drop > 0:
                keep = (torch.rand(h.shape) > drop).float()
                h = h * keep / (1 - drop)
    return h


def huber(pred, target, delta=1.0):
    gap = (pred - target).abs()
    return torch.where(gap < delta, 0.5 * gap**2, delta * (gap - 0.5 * delta)).mean()


def sgd_step(params, grads, velocity, lr, momentum=0.9, decay=1e-4):
    with torch.no_grad():
        for p, g, v in zip(params, grads, velocity):
            v.mul_(momentum).add_(g)
            if p.dim() > 1:
                p.mul_(1 - lr * decay)
            p.sub_(lr * v)


@torch.no_grad()
def errors(params, x, y, s):
    """Root mean square error and median relative error in the unit of the data (100,000 dollars)."""
    value = (predict(params, x) * s["y_std"] + s["y_mean"]).exp()
    rmse = ((value - y) ** 2).mean().sqrt().item()
    relative = ((value - y).abs() / y).median().item()
    return rmse, relative


torch.manual_seed(11)
g = torch.Generator().manual_seed(11)

x_all, y_all = read_rows()
uncapped = (y_all < 5.0).squeeze(1)  # values above half a million are cut off in the source
x_all, y_all = x_all[uncapped], y_all[uncapped]
order = torch.randperm(len(x_all), generator=g)[:10_000]
train_rows, val_rows, test_rows = order[:6000], order[6000:8000], order[8000:]
scaler = fit_scaler(x_all[train_rows], y_all[train_rows])
x_train, x_val, x_test = (scale_inputs(x_all[rows], scaler) for rows in (train_rows, val_rows, test_rows))
y_train, y_val, y_test = y_all[train_rows], y_all[val_rows], y_all[test_rows]
t_train = (y_train.log() - scaler["y_mean"]) / scaler["y_std"]

EPOCHS, BATCH, PATIENCE, LR = 40, 64, 6, 0.02
params = init_params([x_train.shape[1], 64, 32, 1], g)
velocity = [torch.zeros_like(p) for p in params]
best, best_epoch, best_params = float("inf"), -1, None
for epoch in range(EPOCHS):
    lr = LR * 0.93**epoch
    shuffled = torch.randperm(len(x_train), generator=g)
    total = 0.0
    for start in range(0, len(x_train), BATCH):
        rows = shuffled[start : start + BATCH]
        loss = huber(predict(params, x_train[rows], drop=0.05), t_train[rows])
        grads = torch.autograd.grad(loss, params)
        norm = torch.stack([grad.norm() for grad in grads]).norm()
        grads = [grad * (5.0 / norm).clamp(max=1.0) for grad in grads]
        sgd_step(params, grads, velocity, lr)
        total += loss.item() * len(rows)
    val_rmse, val_relative = errors(params, x_val, y_val, scaler)
    if val_rmse < best:
        best, best_epoch = val_rmse, epoch
        best_params = [p.detach().clone() for p in params]
    if epoch % 5 == 0:
        print(
            f"epoch {epoch:2d} lr {lr:.4f} train {total / len(x_train):.4f} val rmse {val_rmse:.4f} {val_relative:.4f}"
        )
    if epoch - best_epoch >= PATIENCE:
        print("stopped at epoch", epoch)
        break

test_rmse, test_relative = errors(best_params, x_test, y_test, scaler)
constant = (y_test - y_train.mean()).pow(2).mean().sqrt().item()
print(f"best epoch {best_epoch} val rmse {best:.5f}")
print(f"test rmse {test_rmse:.5f} median relative error {test_relative:.5f} (mean of training: {constant:.5f})")
