"""Fraud-like table: 6 % positives, missing values, one categorical column.

Weighted loss, early stopping on validation average precision, and a decision
threshold that is chosen on validation and then used once on the test set.
"""
import copy

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve, roc_auc_score
from sklearn.model_selection import train_test_split

SEED = 17
N_CODES = 12


def load_table():
    X, y = make_classification(n_samples=6000, n_features=16, n_informative=8, n_redundant=3,
                               n_clusters_per_class=3, weights=[0.94], class_sep=1.3,
                               flip_y=0.01, random_state=SEED)
    rng = np.random.default_rng(SEED)
    # a categorical code that is correlated with the label for some of its values
    risky = rng.random(len(y)) < 0.5
    code = rng.integers(0, N_CODES, len(y))
    code = np.where((y == 1) & risky, rng.integers(0, 3, len(y)), code)
    X[:, 0] = np.exp(X[:, 0])                       # amount: a long tail
    X[:, 3] = X[:, 3] * 250 + 1000                  # other units
    X[rng.random(X.shape) < 0.04] = np.nan
    return X.astype(np.float32), code, y.astype(np.float32)


class Preprocessor:
    """Median imputation with indicator columns, log of the amount, standardisation."""

    def fit(self, X):
        self.median = np.nanmedian(X, axis=0)
        filled = self._fill(X)
        self.mean, self.std = filled.mean(axis=0), filled.std(axis=0)
        return self

    def _fill(self, X):
        filled = np.where(np.isnan(X), self.median, X)
        filled[:, 0] = np.log1p(filled[:, 0])
        return filled

    def transform(self, X):
        scaled = (self._fill(X) - self.mean) / self.std
        return torch.tensor(np.hstack([scaled, np.isnan(X)]), dtype=torch.float32)


class TabularNet(nn.Module):
    def __init__(self, n_numeric, emb=4, hidden=64):
        super().__init__()
        self.code = nn.Embedding(N_CODES, emb)
        self.layers = nn.Sequential(
            nn.Linear(n_numeric + emb, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.25),
            nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.25),
            nn.Linear(hidden, 1))

    def forward(self, x, c):
        return self.layers(torch.cat([x, self.code(c)], dim=1)).squeeze(1)


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.wait, self.state = patience, -np.inf, 0, None

    def update(self, score, model):
        if score > self.best:
            self.best, self.wait = score, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.wait += 1
        return self.wait >= self.patience


@torch.no_grad()
def scores_of(model, x, c):
    model.eval()
    return torch.sigmoid(model(x, c)).numpy()


def best_threshold(y, p):
    precision, recall, thresholds = precision_recall_curve(y, p)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-9)
    return thresholds[f1[:-1].argmax()]


def main():
    torch.manual_seed(SEED)
    X, code, y = load_table()
    index = np.arange(len(y))
    i_train, i_hold = train_test_split(index, test_size=0.4, stratify=y, random_state=SEED)
    i_val, i_test = train_test_split(i_hold, test_size=0.5, stratify=y[i_hold], random_state=SEED)

    prep = Preprocessor().fit(X[i_train])
    x_train, x_val, x_test = (prep.transform(X[i]) for i in (i_train, i_val, i_test))
    c_train, c_val, c_test = (torch.tensor(code[i]) for i in (i_train, i_val, i_test))
    t_train = torch.tensor(y[i_train])

    model = TabularNet(x_train.shape[1])
    n_pos = t_train.sum()
    pos_weight = ((len(t_train) - n_pos) / n_pos).sqrt()      # softened class weight
    criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=2)
    stopper = EarlyStopping(patience=5)

    for epoch in range(30):
        model.train()
        total = 0.0
        for batch in torch.randperm(len(t_train)).split(160):
            optimizer.zero_grad()
            loss = criterion(model(x_train[batch], c_train[batch]), t_train[batch])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        ap = average_precision_score(y[i_val], scores_of(model, x_val, c_val))
        scheduler.step(ap)
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d} loss {total / len(t_train):.5f} val AP {ap:.5f}")
        if stopper.update(ap, model):
            print("stopped at epoch", epoch)
            break

    model.load_state_dict(stopper.state)
    threshold = best_threshold(y[i_val], scores_of(model, x_val, c_val))
    p_test = scores_of(model, x_test, c_test)
    flagged = p_test >= threshold
    print(f"threshold {threshold:.5f} flagged {int(flagged.sum())} of {len(flagged)}, true {int(y[i_test].sum())}")
    print(f"test F1 {f1_score(y[i_test], flagged):.5f}  AUC {roc_auc_score(y[i_test], p_test):.5f}  "
          f"AP {average_precision_score(y[i_test], p_test):.5f}")


if __name__ == "__main__":
    main()
