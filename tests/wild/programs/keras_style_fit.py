"""Healthy: a Keras-like Model class: compile, fit with validation_split and callbacks by duck typing, evaluate, predict in batches."""
import numpy as np
import torch
from sklearn.datasets import load_breast_cancer

LOSSES = {"bce": torch.nn.BCELoss(), "mse": torch.nn.MSELoss()}
OPTIMIZERS = {"adam": torch.optim.Adam, "nadam": torch.optim.NAdam}


class History:
    def __init__(self):
        self.history = {}

    def on_epoch_end(self, model, epoch, logs):
        for key, value in logs.items():
            self.history.setdefault(key, []).append(value)


class EarlyStopping:
    def __init__(self, monitor="val_loss", patience=3, restore_best_weights=True):
        self.monitor, self.patience, self.restore = monitor, patience, restore_best_weights
        self.best, self.wait, self.weights = np.inf, 0, None

    def on_epoch_end(self, model, epoch, logs):
        if logs[self.monitor] < self.best - 1e-4:
            self.best, self.wait = logs[self.monitor], 0
            self.weights = {k: v.clone() for k, v in model.net.state_dict().items()}
        else:
            self.wait += 1
            if self.wait >= self.patience:
                model.stop_training = True
                if self.restore:
                    model.net.load_state_dict(self.weights)


class Model:
    def __init__(self, layers):
        self.net, self.stop_training = torch.nn.Sequential(*layers), False

    def compile(self, optimizer, loss, metrics=(), learning_rate=1e-3):
        self.loss, self.metrics = LOSSES[loss], metrics
        self.optimizer = OPTIMIZERS[optimizer](self.net.parameters(), lr=learning_rate)
        return self

    def train_on_batch(self, x, y):
        self.net.train()
        self.optimizer.zero_grad()
        loss = self.loss(self.net(x), y)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    @torch.no_grad()
    def predict(self, x, batch_size=128):
        self.net.eval()
        x = torch.as_tensor(x, dtype=torch.float32)
        return np.concatenate([self.net(chunk).numpy() for chunk in x.split(batch_size)])

    def evaluate(self, x, y):
        prediction = torch.from_numpy(self.predict(x))
        target = torch.as_tensor(y, dtype=torch.float32)
        logs = {"loss": self.loss(prediction, target).item()}
        if "accuracy" in self.metrics:
            logs["accuracy"] = ((prediction > 0.5) == target.bool()).float().mean().item()
        return logs

    def fit(self, x, y, batch_size=32, epochs=1, validation_split=0.0, callbacks=(), shuffle=True):
        split = int(len(x) * (1 - validation_split))
        x_val, y_val, x, y = x[split:], y[split:], x[:split], y[:split]
        history = History()
        for epoch in range(epochs):
            order = np.random.permutation(len(x)) if shuffle else np.arange(len(x))
            losses = []
            for start in range(0, len(x), batch_size):
                index = order[start:start + batch_size]
                losses.append(self.train_on_batch(torch.as_tensor(x[index], dtype=torch.float32), torch.as_tensor(y[index], dtype=torch.float32)))
            logs = {"loss": np.mean(losses)} | {f"val_{k}": v for k, v in self.evaluate(x_val, y_val).items()}
            for callback in (history, *callbacks):
                callback.on_epoch_end(self, epoch, logs)
            if self.stop_training:
                break
        return history


np.random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)
data = load_breast_cancer()
order = np.random.permutation(len(data.data))
x, y = data.data[order], data.target[order, None]
x = (x - x[:450].mean(0)) / x[:450].std(0)
model = Model([torch.nn.Linear(30, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1), torch.nn.Sigmoid()])
model.compile("nadam", loss="bce", metrics=["accuracy"], learning_rate=5e-3)
history = model.fit(x[:450], y[:450], epochs=12, validation_split=0.2, callbacks=[EarlyStopping(patience=3)])
print("epochs", len(history.history["loss"]), {k: round(v, 3) for k, v in model.evaluate(x[450:], y[450:]).items()})
