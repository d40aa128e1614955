import numpy as np
import torch
from copy import deepcopy
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    """Stops training when the monitored loss has not improved for `patience` epochs."""

    def __init__(self, patience=8, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best_loss = float("inf")
        self.best_epoch = -1
        self.best_model_dict = None
        self.wait = 0

    def on_epoch_end(self, epoch, val_loss, model):
        if val_loss < self.best_loss - self.min_delta:
            self.best_loss = val_loss
            self.best_epoch = epoch
            self.best_model_dict = deepcopy(model.state_dict())
            self.wait = 0
        else:
            self.wait += 1
        return self.wait >= self.patience

    def restore(self, model):
        model.load_state_dict(self.best_model_dict)


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr, callback, max_epochs):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()
        self.callback = callback
        self.max_epochs = max_epochs

    def train_epoch(self):
        self.model.train()
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            self.criterion(self.model(x), y).backward()
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        total = sum(self.criterion(self.model(x), y).item() * len(x) for x, y in loader)
        return total / len(loader.dataset)

    def fit(self):
        for epoch in range(self.max_epochs):
            self.train_epoch()
            val_loss = self.evaluate(self.val_loader)
            stop = self.callback.on_epoch_end(epoch, val_loss, self.model)
            if epoch % 5 == 0 or stop:
                print(f"epoch {epoch}: val mse {val_loss:.4f}")
            if stop:
                print(f"early stop at epoch {epoch}, best epoch {self.callback.best_epoch}")
                break
        self.callback.restore(self.model)


def to_loader(x, y, batch_size, shuffle=False):
    ds = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
    return DataLoader(ds, batch_size=batch_size, shuffle=shuffle)


if __name__ == "__main__":
    torch.manual_seed(0)
    X, y = load_diabetes(return_X_y=True)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.4, random_state=0)
    X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
    x_scaler = StandardScaler().fit(X_train)
    y_scaler = StandardScaler().fit(y_train[:, None])

    loaders = [
        to_loader(x_scaler.transform(a), y_scaler.transform(b[:, None]), 32, shuffle=(i == 0))
        for i, (a, b) in enumerate([(X_train, y_train), (X_val, y_val), (X_test, y_test)])
    ]
    net = nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    trainer = Trainer(net, loaders[0], loaders[1], lr=1e-3, callback=EarlyStopping(patience=20), max_epochs=100)
    trainer.fit()
    print(f"restored model: val mse {trainer.evaluate(loaders[1]):.4f}, test mse {trainer.evaluate(loaders[2]):.4f}")
    print(f"test rmse in target units: {np.sqrt(trainer.evaluate(loaders[2])) * y_scaler.scale_[0]:.2f}")
