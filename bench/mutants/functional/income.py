"""Who earns more than 50,000? Logistic regression on the census data, with calibration and a threshold.

The strength of the penalty is found by cross-validation, the model is calibrated on separate rows (Platt), and the
threshold with the highest profit of a campaign is chosen on other rows. The official test file is used once.
"""

import csv
import os

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split

FOLDER = os.path.join(os.environ["TRUESTEP_DATA"], "adult")
COLUMNS = ["age", "workclass", "fnlwgt", "education", "education_num", "marital", "occupation", "relationship"]
COLUMNS += ["race", "sex", "gain", "loss", "hours", "country", "income"]
CATEGORIES = ["workclass", "marital", "occupation", "relationship", "country"]
GAIN_OF_HIT, COST_OF_LETTER = 10.0, 4.0


def load(name):
    with open(os.path.join(FOLDER, name), newline="") as f:
        rows = [dict(zip(COLUMNS, r)) for r in csv.reader(f, skipinitialspace=True) if len(r) == len(COLUMNS)]
    labels = np.array([row["income"].rstrip(".") == ">50K" for row in rows], dtype=np.float32)
    return rows, labels


def numbers(rows):
    plain = np.array([[float(r[c]) for c in ("age", "education_num", "hours")] for r in rows])
    money = np.log1p([[float(r["gain"]), float(r["loss"])] for r in rows])
    return np.concatenate([plain, plain[:, :1] ** 2 / 100, money], axis=1)


def fit_encoder(rows):
    values = numbers(rows)
    levels = {}
    for c in CATEGORIES:
        names, counts = np.unique([r[c] for r in rows if r[c] != "?"], return_counts=True)
        levels[c] = [n for n, k in zip(names, counts) if k >= 20]
    return values.mean(axis=0), values.std(axis=0), levels


def encode(rows, encoder):
    mean, std, levels = encoder
    parts = [(numbers(rows) - mean) / std]
    for c in CATEGORIES:
        column = np.array([r[c] for r in rows])
        parts.append(np.stack([column == name for name in levels[c]], axis=1))
    return torch.tensor(np.concatenate(parts, axis=1), dtype=torch.float32)


def logits(model, x):
    w, b = model
    return x @ w + b


def bce(z, y):
    """Mean cross-entropy from logits, in the stable form."""
    return (z.clamp(min=0) - z * y + torch.log1p(torch.exp(-z.abs()))).mean()


def fit_logistic(x, y, penalty, epochs=30, batch=128, lr=1.0, seed=0):
    gen = torch.Generator().manual_seed(seed)
    w = torch.zeros(x.shape[1], requires_grad=True)
    b = torch.zeros((), requires_grad=True)
    average_w, average_b, averaged = torch.zeros_like(w), torch.zeros_like(b), 0
    for epoch in range(epochs):
        rate = lr / (1 + 0.3 * epoch)
        for rows in torch.randperm(len(x), generator=gen).split(batch):
            loss = bce(logits((w, b), x[rows]), y[rows]) + 0.5 * penalty * w.pow(2).sum()
            loss.backward()
            with torch.no_grad():
                w -= rate * w.grad
                b -= rate * b.grad
                w.grad.zero_()
                b.grad.zero_()
            if epoch >= epochs // 2:  # Polyak average of the second half
                averaged += 1
                average_w += (w.detach() - average_w) / averaged
                average_b += (b.detach() - average_b) / averaged
    return average_w, average_b


def cross_validate(rows, y, penalties, folds=4):
    """Mean loss on the left out fold for each penalty; the encoder is fitted in each fold."""
    scores = np.zeros((len(penalties), folds))
    splitter = StratifiedKFold(folds, shuffle=True, random_state=0)
    for f, (inside, outside) in enumerate(splitter.split(np.zeros(len(y)), y)):
        encoder = fit_encoder([rows[i] for i in inside])
        x_in, x_out = (encode([rows[i] for i in part], encoder) for part in (inside, outside))
        y_in, y_out = torch.tensor(y[inside]), torch.tensor(y[outside])
        for p, penalty in enumerate(penalties):
            model = fit_logistic(x_in, y_in, penalty)
            scores[p, f] = bce(logits(model, x_out), y_out).item()
    return scores.mean(axis=1)


def fit_platt(z, y, steps=200, lr=0.3):
    """Scale and shift of the logits, by gradient descent on the whole calibration set."""
    a, c = torch.ones((), requires_grad=True), torch.zeros((), requires_grad=True)
    for _ in range(steps):
        grads = torch.autograd.grad(bce(a * z + c, y), (a, c))
        with torch.no_grad():
            for p, g in zip((a, c), grads):
                p -= lr * g
    return a.item(), c.item()


def profit(p, y, threshold):
    """Of 1000 people: a letter costs, and a letter to one with a high income brings more than it costs."""
    sent = p >= threshold
    return 1000 * (GAIN_OF_HIT * (sent & (y == 1)).mean() - COST_OF_LETTER * sent.mean())


def choose_threshold(p, y):
    grid = np.linspace(0.05, 0.95, 91)
    return float(max(grid, key=lambda t: profit(p, y, t)))


def calibration_error(p, y, bins=10):
    which = np.minimum((p * bins).astype(int), bins - 1)
    return sum(abs(p[which == b].mean() - y[which == b].mean()) * (which == b).mean() for b in np.unique(which))


def describe(name, z, y, threshold):
    p = torch.sigmoid(z).numpy()
    loss = bce(z, torch.tensor(y)).item()
    sent = p >= threshold
    recall, precision = sent[y == 1].mean(), y[sent].mean()
    print(f"{name}: auc {roc_auc_score(y, p):.5f} loss {loss:.5f} calibration error {calibration_error(p, y):.5f}")
    print(f"  profit {profit(p, y, threshold):.3f} recall {recall:.4f} precision {precision:.4f} mean p {p.mean():.4f}")


def main():
    rows, y = load("adult-train.csv")
    picked, _ = train_test_split(np.arange(len(y)), train_size=6000, stratify=y, random_state=1)
    fit_ids, rest = train_test_split(picked, train_size=3000, stratify=y[picked], random_state=2)
    calibration_ids, choice_ids = train_test_split(rest, train_size=0.5, stratify=y[rest], random_state=3)
    fit_rows, y_fit = [rows[i] for i in fit_ids], y[fit_ids]

    penalties = [1e-4, 1e-3, 1e-2, 1e-1]
    scores = cross_validate(fit_rows, y_fit, penalties)
    penalty = penalties[int(scores.argmin())]
    print("cross-validation", dict(zip(penalties, scores.round(5).tolist())), "-> penalty", penalty)

    encoder = fit_encoder(fit_rows)
    model = fit_logistic(encode(fit_rows, encoder), torch.tensor(y_fit), penalty)
    z_cal = logits(model, encode([rows[i] for i in calibration_ids], encoder))
    a, c = fit_platt(z_cal, torch.tensor(y[calibration_ids]))
    z_choice = a * logits(model, encode([rows[i] for i in choice_ids], encoder)) + c
    threshold = choose_threshold(torch.sigmoid(z_choice).numpy(), y[choice_ids])
    print(f"scale {a:.4f} shift {c:.4f} threshold {threshold:.2f}")

    test_rows, y_test = load("adult-test.csv")
    z_test = a * logits(model, encode(test_rows, encoder)) + c
    describe("choice", z_choice, y[choice_ids], threshold)
    describe("test", z_test, y_test, threshold)


main()
