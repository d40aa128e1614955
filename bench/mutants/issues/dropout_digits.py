import argparse
from dataclasses import dataclass

import torch
from torch import nn
from sklearn.datasets import load_digits


@dataclass
class Config:
    hidden: int = 96
    p_drop: float = 0.5
    lr: float = 2e-3
    batch_size: int = 64
    epochs: int = 15
    seed: int = 11


def get_data(seed):
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x).float() / 16, torch.tensor(y)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    x, y = x[order], y[order]
    n_train = int(0.8 * len(x))
    return x[:n_train], y[:n_train], x[n_train:], y[n_train:]


def build_model(cfg):
    return nn.Sequential(
        nn.Linear(64, cfg.hidden), nn.ReLU(), nn.Dropout(cfg.p_drop),
        nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(), nn.Dropout(cfg.p_drop),
        nn.Linear(cfg.hidden, 10),
    )


def train_one_epoch(model, loss_fn, opt, x, y, batch_size):
    model.train()
    total, perm = 0.0, torch.randperm(len(x))
    for idx in perm.split(batch_size):
        opt.zero_grad()
        loss = loss_fn(model(x[idx]), y[idx])
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    return total / len(x)


def validate(model, loss_fn, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
        return loss_fn(out, y).item(), (out.argmax(-1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', type=int, default=Config.epochs)
    parser.add_argument('--seed', type=int, default=Config.seed)
    args = parser.parse_args()
    cfg = Config(epochs=args.epochs, seed=args.seed)

    torch.manual_seed(cfg.seed)
    x_tr, y_tr, x_val, y_val = get_data(cfg.seed)
    model = build_model(cfg)
    loss_fn = nn.CrossEntropyLoss()
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)

    for epoch in range(1, cfg.epochs + 1):
        tr = train_one_epoch(model, loss_fn, opt, x_tr, y_tr, cfg.batch_size)
        vl, acc = validate(model, loss_fn, x_val, y_val)
        if epoch % 3 == 0:
            print(f'[{epoch:02d}/{cfg.epochs}] train_loss={tr:.4f} val_loss={vl:.4f} val_acc={acc:.4f}')
    print(f'validation accuracy after training: {acc:.4f}')


if __name__ == '__main__':
    main()
