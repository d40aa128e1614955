"""Click-through prediction on an advertising log: wide embeddings + MLP, split by time."""
from dataclasses import dataclass, field

import numpy as np
import torch
from sklearn.metrics import log_loss, roc_auc_score
from torch import nn


@dataclass
class Config:
    seed: int = 21
    rows: int = 24_000
    train_until: int = 20
    val_until: int = 25
    keep_negatives: float = 0.4
    dim: int = 6
    hidden: int = 32
    batch: int = 256
    epochs: int = 5
    lr: float = 2e-3
    weight_decay: float = 1e-4
    cats: list = field(default_factory=lambda: ["user", "ad", "site", "device"])


def make_log(cfg):
    rng = np.random.default_rng(cfg.seed)
    n = cfg.rows
    day = np.sort(rng.integers(0, 30, n))
    user = rng.integers(0, 300, n) * 7 + 100
    ad = np.minimum(rng.geometric(0.04, n), 90) + day // 3 * 4          # ads come and go
    site, device = rng.integers(0, 25, n), rng.choice(3, n, p=[0.6, 0.3, 0.1])
    price, age, hour = np.exp(rng.normal(1.0 + 0.02 * day, 0.8)), rng.normal(40, 12, n), rng.integers(0, 24, n)
    z = sum(rng.normal(0, s, 5000)[col] for s, col in [(0.5, user), (0.8, ad), (0.5, site), (0.3, device)])
    z = z - 2.2 - 0.4 * np.log(price) + 0.5 * np.cos((hour - 20) / 24 * 2 * np.pi) + 0.015 * day
    z += 0.02 * (age - 40) * (device == 1)
    click = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(np.float32)
    age[rng.random(n) < 0.1] = np.nan
    return dict(day=day, user=user, ad=ad, site=site, device=device, price=price, age=age, hour=hour, click=click)


def add_history(log, prior=20.0):
    """Smoothed click rate of the ad over the days before the row's own day."""
    rate, base = np.zeros(len(log["day"])), 0.1
    for d in np.unique(log["day"]):
        past, now = log["day"] < d, log["day"] == d
        shown = np.bincount(log["ad"][past], minlength=5000)
        clicked = np.bincount(log["ad"][past], weights=log["click"][past], minlength=5000)
        rate[now] = ((clicked + prior * base) / (shown + prior))[log["ad"][now]]
    log["ad_rate"] = rate
    return log


def take(log, mask):
    return {k: v[mask] for k, v in log.items()}


class Encoder:
    def __init__(self, cats):
        self.cats = cats

    def _numeric(self, part):
        hour = part["hour"] / 24 * 2 * np.pi
        return np.stack([np.log(part["price"]), part["age"], part["ad_rate"], np.sin(hour), np.cos(hour)], axis=1)

    def fit(self, part):
        self.vocab = {c: {v: i + 1 for i, v in enumerate(np.unique(part[c]))} for c in self.cats}   # 0: unseen
        num = self._numeric(part)
        self.mean, self.std = np.nanmean(num, axis=0), np.nanstd(num, axis=0)
        return self

    def transform(self, part):
        cat = np.stack([[self.vocab[c].get(v, 0) for v in part[c]] for c in self.cats], axis=1)
        num = (self._numeric(part) - self.mean) / self.std
        num = np.concatenate([np.nan_to_num(num, nan=0.0), np.isnan(num[:, 1:2])], axis=1)
        return torch.tensor(cat), torch.tensor(num, dtype=torch.float32), torch.tensor(part["click"])

class ClickNet(nn.Module):
    def __init__(self, sizes, n_num, cfg):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(s, cfg.dim) for s in sizes)
        wide = cfg.dim * len(sizes) + n_num
        self.mlp = nn.Sequential(nn.Linear(wide, cfg.hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(cfg.hidden, 1, bias=False))
        self.bias = nn.Parameter(torch.zeros(1))
        for t in self.tables:
            nn.init.normal_(t.weight, std=0.05)

    def start_at(self, rate):
        self.bias = nn.Parameter(torch.tensor([np.log(rate / (1 - rate))], dtype=torch.float32))

    def forward(self, cat, num):
        emb = [t(cat[:, i]) for i, t in enumerate(self.tables)]
        return self.mlp(torch.cat(emb + [num], dim=1)).squeeze(1) + self.bias


class Trainer:
    def __init__(self, model, train, cfg):
        self.model, self.cfg = model, cfg
        pos = train[2] == 1
        kept = pos | (torch.rand(len(pos)) < cfg.keep_negatives)          # thin out the negatives
        self.train = [t[kept] for t in train]
        self.shift = np.log(cfg.keep_negatives)
        self.model.start_at(self.train[2].mean().item())
        self.optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
        self.criterion = nn.BCEWithLogitsLoss()

    def epoch(self):
        self.model.train()
        order, losses = torch.randperm(len(self.train[2])), []
        for idx in order.split(self.cfg.batch):
            cat, num, y = (t[idx] for t in self.train)
            loss = self.criterion(self.model(cat, num), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return np.mean(losses)

    @torch.no_grad()
    def logits(self, part):
        self.model.eval()
        return self.model(part[0], part[1]) + self.shift


def fit_platt(logits, y):
    ab = torch.tensor([1.0, 0.0], requires_grad=True)
    opt = torch.optim.Adam([ab], lr=0.02)
    for _ in range(300):
        opt.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(ab[0] * logits + ab[1], y).backward()
        opt.step()
    return ab.detach()


def report(name, logits, y, bins=10):
    p, y = torch.sigmoid(logits).double().numpy(), y.numpy()
    which = (p * bins).astype(int)
    ece = sum(abs(p[which == b].mean() - y[which == b].mean()) * (which == b).mean() for b in np.unique(which))
    print(f"{name:16s} AUC {roc_auc_score(y, p):.4f}  log loss {log_loss(y, p):.5f}  ECE {ece:.4f}  mean p {p.mean():.4f} rate {y.mean():.4f}")


def main(cfg=Config()):
    torch.manual_seed(cfg.seed)
    log = add_history(make_log(cfg))
    when = log["day"]
    train_log = take(log, when < cfg.train_until)
    val_log = take(log, (when >= cfg.train_until) & (when < cfg.val_until))
    test_log = take(log, when >= cfg.val_until)
    enc = Encoder(cfg.cats).fit(train_log)
    train, val, test = enc.transform(train_log), enc.transform(val_log), enc.transform(test_log)
    trainer = Trainer(ClickNet([len(enc.vocab[c]) + 1 for c in cfg.cats], train[1].shape[1], cfg), train, cfg)
    for e in range(cfg.epochs):
        print(f"epoch {e} loss {trainer.epoch():.4f}")
        report("  val", trainer.logits(val), val[2])
    a, b = fit_platt(trainer.logits(val), val[2])
    report("test raw", trainer.logits(test), test[2])
    report("test calibrated", a * trainer.logits(test) + b, test[2])


main()
