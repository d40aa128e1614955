import copy

import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

torch.manual_seed(17)

# ------------------------------------------------------------------ data
X, y = make_classification(n_samples=600, n_features=30, n_informative=8, n_redundant=4,
                           class_sep=0.8, flip_y=0.15, random_state=17)
X_dev, X_test, y_dev, y_test = train_test_split(X, y, test_size=0.2, random_state=1, stratify=y)
X_train, X_val, y_train, y_val = train_test_split(X_dev, y_dev, test_size=0.25, random_state=1, stratify=y_dev)
mean, std = X_train.mean(axis=0), X_train.std(axis=0)


def tensors(X, y):
    return torch.tensor((X - mean) / std, dtype=torch.float32), torch.tensor(y)


X_train, y_train = tensors(X_train, y_train)
X_val, y_val = tensors(X_val, y_val)
X_test, y_test = tensors(X_test, y_test)


# ------------------------------------------------------------------ model
class MLP(nn.Module):
    def __init__(self, n_in, n_hidden=64, n_out=2):
        super().__init__()
        self.hidden = nn.Linear(n_in, n_hidden)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(n_hidden, n_out)

    def forward(self, x):
        return self.out(self.drop(torch.relu(self.hidden(x))))


@torch.no_grad()
def accuracy(model, X, y):
    model.eval()
    return (model(X).argmax(1) == y).double().mean().item()


# ------------------------------------------------------------------ training
model = MLP(X_train.shape[1])
loss_fn = nn.CrossEntropyLoss()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
best_acc, best_epoch, best_state = 0.0, 0, None

for epoch in range(1, 71):
    model.train()
    epoch_loss = 0.0
    for idx in torch.randperm(len(X_train)).split(32):
        opt.zero_grad()
        loss = loss_fn(model(X_train[idx]), y_train[idx])
        loss.backward()
        opt.step()
        epoch_loss += loss.item() * len(idx)
    acc = accuracy(model, X_val, y_val)
    if acc > best_acc:
        best_acc, best_epoch = acc, epoch
        best_state = copy.deepcopy(model.state_dict())
    if epoch % 10 == 0:
        print(f'epoch {epoch:2d} loss {epoch_loss / len(X_train):.4f} accuracy {acc:.4f}')

# ------------------------------------------------------------------ result
model.load_state_dict(best_state)
print(f'best epoch: {best_epoch}')
print(f'TEST ACCURACY: {accuracy(model, X_test, y_test):.4f}')
