# Adult census: entity embeddings + numeric features, 4 folds, average of the folds on test
import copy
import os
import random

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


class CFG:
    path = os.path.join(os.environ.get("TRUESTEP_DATA", "data"), "adult")
    seed = 2021
    n_folds = 4
    epochs = 6
    patience = 2
    batch_size = 128
    lr = 1e-2
    train_rows = 3200
    test_rows = 1500


COLUMNS = "age workclass fnlwgt education education_num marital occupation relationship race sex gain loss hours country target"
CATEGORICAL = ["workclass", "education", "marital", "relationship", "race", "sex"]
NUMERIC = ["age", "education_num", "gain", "loss", "hours", "occupation_rate"]


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def read(name, rows):
    df = pd.read_csv(f"{CFG.path}/{name}.csv", names=COLUMNS.split(), skipinitialspace=True)
    df = df.sample(rows, random_state=CFG.seed).reset_index(drop=True)
    df["target"] = df["target"].str.startswith(">50K").astype(int)
    df["gain"] = np.log1p(df["gain"])
    df["loss"] = np.log1p(df["loss"])
    return df


class Model(nn.Module):
    def __init__(self, cardinalities, n_numeric):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(c, min(8, (c + 1) // 2)) for c in cardinalities)
        width = sum(e.embedding_dim for e in self.embeddings) + n_numeric
        self.layers = nn.Sequential(
            nn.Linear(width, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, cat, num):
        x = torch.cat([e(cat[:, i]) for i, e in enumerate(self.embeddings)] + [num], dim=1)
        return self.layers(x).squeeze(1)


def predict(model, cat, num):
    model.eval()
    with torch.no_grad():
        return torch.sigmoid(model(cat, num)).numpy()


def to_tensors(df, scaler):
    cat = torch.tensor(df[CATEGORICAL].values, dtype=torch.long)
    num = torch.tensor(scaler.transform(df[NUMERIC].values), dtype=torch.float32)
    return cat, num


seed_everything(CFG.seed)
train, test = read("adult-train", CFG.train_rows), read("adult-test", CFG.test_rows)
cardinalities = []
for col in CATEGORICAL:
    codes, levels = pd.factorize(pd.concat([train[col], test[col]]))
    train[col], test[col] = codes[: len(train)], codes[len(train) :]
    cardinalities.append(len(levels))

oof = np.zeros(len(train))
test_pred = np.zeros(len(test))
skf = StratifiedKFold(n_splits=CFG.n_folds, shuffle=True, random_state=CFG.seed)
for fold, (tr_idx, va_idx) in enumerate(skf.split(train, train["target"])):
    seed_everything(CFG.seed + fold)
    tr, va, te = train.iloc[tr_idx].copy(), train.iloc[va_idx].copy(), test.copy()
    rate = tr.groupby("occupation")["target"].mean()
    for df in (tr, va, te):
        df["occupation_rate"] = df["occupation"].map(rate).fillna(tr["target"].mean())
    scaler = StandardScaler().fit(tr[NUMERIC].values)
    tr_cat, tr_num = to_tensors(tr, scaler)
    va_cat, va_num = to_tensors(va, scaler)
    te_cat, te_num = to_tensors(te, scaler)
    tr_y = torch.tensor(tr["target"].values, dtype=torch.float32)
    loader = DataLoader(TensorDataset(tr_cat, tr_num, tr_y), batch_size=CFG.batch_size, shuffle=True, drop_last=True)

    model = Model(cardinalities, len(NUMERIC))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=CFG.lr, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=CFG.lr, epochs=CFG.epochs, steps_per_epoch=len(loader)
    )
    best_auc, best_state, bad = 0.0, None, 0
    for epoch in range(CFG.epochs):
        model.train()
        losses = []
        for cat, num, target in loader:
            loss = criterion(model(cat, num), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        auc = roc_auc_score(va["target"], predict(model, va_cat, va_num))
        print(f"fold {fold} epoch {epoch} loss {np.mean(losses):.4f} auc {auc:.4f}")
        if auc > best_auc:
            best_auc, best_state, bad = auc, copy.deepcopy(model.state_dict()), 0
        else:
            bad += 1
            if bad >= CFG.patience:
                break

    model.load_state_dict(best_state)
    oof[va_idx] = predict(model, va_cat, va_num)
    test_pred += predict(model, te_cat, te_num) / CFG.n_folds

print(f"OOF auc {roc_auc_score(train['target'], oof):.4f} logloss {log_loss(train['target'], oof):.4f}")
print(f"OOF accuracy {accuracy_score(train['target'], oof > 0.5):.4f}")
print(f"test auc {roc_auc_score(test['target'], test_pred):.4f} logloss {log_loss(test['target'], test_pred):.4f}")
