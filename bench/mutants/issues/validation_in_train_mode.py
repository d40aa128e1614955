import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, Dataset


class CancerDataset(Dataset):
    def __init__(self, features, labels):
        self.features = torch.tensor(features, dtype=torch.float32)
        self.labels = torch.tensor(labels, dtype=torch.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        return self.features[idx], self.labels[idx]


class Net(nn.Module):
    def __init__(self, in_features):
        super().__init__()
        self.fc1 = nn.Linear(in_features, 64)
        self.bn1 = nn.BatchNorm1d(64)
        self.fc2 = nn.Linear(64, 32)
        self.bn2 = nn.BatchNorm1d(32)
        self.dropout = nn.Dropout(0.4)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        x = self.dropout(torch.relu(self.bn1(self.fc1(x))))
        x = self.dropout(torch.relu(self.bn2(self.fc2(x))))
        return self.out(x).squeeze(1)


def train(model, loader, criterion, optimizer):
    model.train()
    running_loss = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * len(labels)
    return running_loss / len(loader.dataset)


def predict(model, loader):
    model.eval()
    logits, labels = [], []
    with torch.no_grad():
        for inputs, target in loader:
            logits.append(model(inputs))
            labels.append(target)
    return torch.cat(logits), torch.cat(labels)


def report(name, model, loader, criterion):
    logits, labels = predict(model, loader)
    loss = criterion(logits, labels).item()
    prob = torch.sigmoid(logits).numpy()
    acc = accuracy_score(labels.numpy(), prob > 0.5)
    print(f"  {name}: loss {loss:.4f} acc {acc:.4f} auc {roc_auc_score(labels.numpy(), prob):.4f}")


def main():
    torch.manual_seed(42)
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_tmp, y_train, y_tmp = train_test_split(X, y, test_size=0.4, stratify=y, random_state=42)
    X_val, X_test, y_val, y_test = train_test_split(X_tmp, y_tmp, test_size=0.5, stratify=y_tmp, random_state=42)
    scaler = StandardScaler().fit(X_train)
    train_loader = DataLoader(CancerDataset(scaler.transform(X_train), y_train), batch_size=31, shuffle=True)
    val_loader = DataLoader(CancerDataset(scaler.transform(X_val), y_val), batch_size=16)
    test_loader = DataLoader(CancerDataset(scaler.transform(X_test), y_test), batch_size=16)

    model = Net(X.shape[1])
    criterion = nn.BCEWithLogitsLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    for epoch in range(1, 16):
        loss = train(model, train_loader, criterion, optimizer)
        if epoch % 3 == 0:
            print(f"epoch {epoch}: train loss {loss:.4f}")
            report("val", model, val_loader, criterion)
    report("test", model, test_loader, criterion)


if __name__ == "__main__":
    main()
