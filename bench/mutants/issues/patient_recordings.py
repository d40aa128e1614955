"""Diagnosis from short recordings; every patient gives several recordings."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import GroupShuffleSplit
from sklearn.preprocessing import StandardScaler


def make_cohort(n_patients=160, per_patient=12, n_features=24, seed=0):
    rng = np.random.default_rng(seed)
    diagnosis = rng.integers(0, 2, n_patients)
    features, labels, patients = [], [], []
    for p in range(n_patients):
        signature = rng.normal(0, 1.0, n_features)
        signature[:6] += 1.2 * diagnosis[p]
        features.append(signature + rng.normal(0, 0.6, (per_patient, n_features)))
        labels += [diagnosis[p]] * per_patient
        patients += [p] * per_patient
    return np.concatenate(features), np.array(labels), np.array(patients)


def split(features, labels, patients, seed):
    splitter = GroupShuffleSplit(n_splits=1, test_size=0.3, random_state=seed)
    return next(splitter.split(features, labels, groups=patients))


class Classifier:
    def __init__(self, n_features, lr=5e-4):
        self.net = nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Dropout(0.5),
                                 nn.Linear(32, 1))
        self.loss_fn = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=lr, weight_decay=0.1)

    def fit_epoch(self, x, y, batch_size=32):
        self.net.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(batch_size):
            loss = self.loss_fn(self.net(x[idx]).squeeze(1), y[idx])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(idx)
        return total / len(x)

    @torch.no_grad()
    def score(self, x, y):
        self.net.eval()
        logits = self.net(x).squeeze(1)
        return self.loss_fn(logits, y).item(), ((logits > 0) == y.bool()).float().mean().item()


def main():
    torch.manual_seed(0)
    features, labels, patients = make_cohort()
    train_idx, val_idx = split(features, labels, patients, seed=0)
    print(f"{len(np.unique(patients))} patients, "
          f"{len(train_idx)} training and {len(val_idx)} validation recordings")
    scaler = StandardScaler().fit(features[train_idx])

    def tensors(idx):
        return (torch.tensor(scaler.transform(features[idx]), dtype=torch.float32),
                torch.tensor(labels[idx], dtype=torch.float32))

    x_train, y_train = tensors(train_idx)
    x_val, y_val = tensors(val_idx)
    model = Classifier(features.shape[1])
    for epoch in range(1, 21):
        train_loss = model.fit_epoch(x_train, y_train)
        if epoch % 4 == 0:
            val_loss, val_acc = model.score(x_val, y_val)
            print(f"epoch {epoch:2d}  train {train_loss:.4f}  val {val_loss:.4f}  val acc {val_acc:.4f}")


if __name__ == "__main__":
    main()
