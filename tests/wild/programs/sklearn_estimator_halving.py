"""Healthy: a scikit-learn estimator in cross-validation and successive halving: many short fits, warm starts, clones, pickles."""
import pickle

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted, check_random_state


class TorchMLPClassifier(ClassifierMixin, BaseEstimator):
    def __init__(self, hidden=16, lr=1e-2, epochs=10, dropout=0.0, warm_start=False, random_state=None):
        self.hidden, self.lr, self.epochs, self.dropout = hidden, lr, epochs, dropout
        self.warm_start, self.random_state = warm_start, random_state

    def fit(self, X, y):
        rng = check_random_state(self.random_state)
        generator = torch.Generator().manual_seed(int(rng.randint(2**31)))
        self.encoder_ = LabelEncoder().fit(y)
        self.classes_ = self.encoder_.classes_
        X, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(self.encoder_.transform(y))
        if not (self.warm_start and hasattr(self, "module_")):
            torch.manual_seed(int(rng.randint(2**31)))
            self.module_ = torch.nn.Sequential(
                torch.nn.Linear(X.shape[1], self.hidden), torch.nn.ReLU(), torch.nn.Dropout(self.dropout), torch.nn.Linear(self.hidden, len(self.classes_)))
            self.optimizer_ = torch.optim.Adam(self.module_.parameters(), lr=self.lr)
        self.module_.train()
        for _ in range(self.epochs):
            for index in torch.randperm(len(X), generator=generator).split(32):
                loss = torch.nn.functional.cross_entropy(self.module_(X[index]), y[index])
                self.optimizer_.zero_grad()
                loss.backward()
                self.optimizer_.step()
        return self

    def predict_proba(self, X):
        check_is_fitted(self, "module_")
        self.module_.eval()
        with torch.inference_mode():
            return self.module_(torch.as_tensor(X, dtype=torch.float32)).softmax(-1).numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]


torch.set_num_threads(1)
X, y = load_wine(return_X_y=True)
y = np.array(["red", "white", "rosé"])[y]
scores = cross_val_score(make_pipeline(StandardScaler(), TorchMLPClassifier(random_state=0)), X, y, cv=3)
print("three folds", scores.round(3))

# successive halving by warm starts: the better half goes on
X = StandardScaler().fit_transform(X)
train, test = next(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
rng = np.random.RandomState(0)
base = TorchMLPClassifier(epochs=2, warm_start=True, random_state=1)
pool = [clone(base).set_params(hidden=int(rng.choice([4, 8, 32])), lr=float(10 ** rng.uniform(-4, -1)), dropout=float(rng.choice([0, 0.2]))) for _ in range(6)]
while len(pool) > 1:
    for candidate in pool:
        candidate.fit(X[train], y[train])
    pool = sorted(pool, key=lambda c: c.score(X[test], y[test]), reverse=True)[:len(pool) // 2]
best = pickle.loads(pickle.dumps(pool[0]))
print("best", best.hidden, round(best.lr, 4), "accuracy", round(best.score(X[test], y[test]), 3))
