"""Choose the width and the weight decay of a regression net by validation, then report the test error once."""

import itertools

import torch
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn


def get_data():
    x, y = make_friedman1(n_samples=220, n_features=12, noise=2.5, random_state=33)
    x_rest, x_test, y_rest, y_test = train_test_split(x, y, test_size=50, random_state=33)
    x_train, x_val, y_train, y_val = train_test_split(x_rest, y_rest, test_size=50, random_state=34)
    xs, ys = StandardScaler().fit(x_train), StandardScaler().fit(y_train[:, None])

    def prepare(a, b):
        return torch.tensor(xs.transform(a), dtype=torch.float32), torch.tensor(
            ys.transform(b[:, None]), dtype=torch.float32
        )

    return prepare(x_train, y_train), prepare(x_val, y_val), prepare(x_test, y_test)


def mse(model, data):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(data[0]), data[1]).item()


def train(width, decay, seed, train_data, epochs=25):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=decay)
    x, y = train_data
    for _ in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(30):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
    return model


def main():
    train_data, val_data, test_data = get_data()
    best_model, best_score, best_setting = None, float("inf"), None
    for width, decay, seed in itertools.product([4, 16, 48], [0.0, 0.3], [0, 1]):
        model = train(width, decay, seed, train_data)
        score = mse(model, val_data)
        print(
            f"width {width:2d} decay {decay:.1f} seed {seed}: train {mse(model, train_data):.4f} validation {score:.4f}"
        )
        if score < best_score:
            best_model, best_score, best_setting = model, score, (width, decay, seed)
    print("chosen:", best_setting, "validation", round(best_score, 4))
    print("test error of the chosen model:", round(mse(best_model, test_data), 4))


if __name__ == "__main__":
    main()
