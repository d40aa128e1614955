import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

SEED = 8
torch.manual_seed(SEED)

X, y = make_classification(n_samples=4000, n_features=20, n_informative=6, weights=[0.75],
                           class_sep=0.6, flip_y=0.05, random_state=SEED)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=SEED)
scaler = StandardScaler()
X_train = scaler.fit_transform(X_train)
X_test = scaler.transform(X_test)


def make_loader(features, target, shuffle):
    return DataLoader(
        TensorDataset(torch.from_numpy(features).float(), torch.from_numpy(target).float()),
        batch_size=64, shuffle=shuffle)


train_loader = make_loader(X_train, y_train, True)
test_loader = make_loader(X_test, y_test, False)


class ChurnModel(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.layer_1 = nn.Linear(n_features, 64)
        self.layer_2 = nn.Linear(64, 32)
        self.layer_out = nn.Linear(32, 1)
        self.dropout = nn.Dropout(0.1)
        self.norm_1 = nn.BatchNorm1d(64)

    def forward(self, inputs):
        x = self.norm_1(torch.relu(self.layer_1(inputs)))
        x = torch.relu(self.layer_2(x))
        return self.layer_out(self.dropout(x)).squeeze(1)


model = ChurnModel(X.shape[1])
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def to_labels(logits):
    return (torch.sigmoid(logits) > 0.5).long()


def train_epoch():
    model.train()
    epoch_loss, hits = 0.0, 0
    for X_batch, y_batch in train_loader:
        optimizer.zero_grad()
        y_pred = model(X_batch)
        loss = criterion(y_pred, y_batch)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(y_batch)
        hits += (to_labels(y_pred) == y_batch).sum().item()
    return epoch_loss / len(X_train), hits / len(X_train)


def predict(loader):
    model.eval()
    predictions = []
    with torch.no_grad():
        for X_batch, _ in loader:
            predictions.append(to_labels(model(X_batch)))
    return torch.cat(predictions).numpy()


for epoch in range(1, 21):
    loss, acc = train_epoch()
    if epoch % 5 == 0:
        y_hat = predict(test_loader)
        print(f"epoch {epoch:2d} | loss {loss:.4f} | train acc {acc:.4f} | "
              f"precision {precision_score(y_test, y_hat):.4f} | "
              f"recall {recall_score(y_test, y_hat):.4f} | F1 {f1_score(y_test, y_hat):.4f}")
