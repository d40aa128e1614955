"""Low-precision training of a digit classifier in bfloat16."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class Config:
    hidden = 128
    lr = 1e-4
    batch_size = 64
    epochs = 25
    seed = 44


def prepare(seed):
    X, y = load_digits(return_X_y=True)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    mean, std = X_train.mean(0), X_train.std(0) + 1e-6
    scale = lambda a: torch.tensor((a - mean) / std, dtype=torch.float32)
    return scale(X_train), torch.tensor(y_train), scale(X_val), torch.tensor(y_val)


def build(cfg):
    return nn.Sequential(nn.Linear(64, cfg.hidden), nn.ReLU(),
                         nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(),
                         nn.Linear(cfg.hidden, 10))


def forward(model, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(x)
    return logits.float()


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = forward(model, x)
        return nn.functional.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    x_train, y_train, x_val, y_val = prepare(cfg.seed)
    model = build(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for epoch in range(1, cfg.epochs + 1):
        model.train()
        losses = []
        for idx in torch.randperm(len(x_train)).split(cfg.batch_size):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(forward(model, x_train[idx]), y_train[idx])
            loss.backward()
            optimizer.step()
            losses.append(loss.item() * len(idx))
        if epoch % 5 == 0:
            val_loss, val_acc = evaluate(model, x_val, y_val)
            print(f"epoch {epoch:2d}  train loss {np.sum(losses) / len(x_train):.4f}  "
                  f"val loss {val_loss:.4f}  val acc {val_acc:.4f}")


if __name__ == "__main__":
    main()
