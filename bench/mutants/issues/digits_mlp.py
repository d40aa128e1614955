import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 7
torch.manual_seed(SEED)

# %% data
digits = load_digits()
x, y = digits.data.astype(np.float32) / 16.0, digits.target
x_tr, x_val, y_tr, y_val = train_test_split(x, y, test_size=0.2, random_state=SEED, stratify=y)
x_tr, x_val = torch.from_numpy(x_tr), torch.from_numpy(x_val)
y_tr, y_val = torch.from_numpy(y_tr), torch.from_numpy(y_val)


# %% model
class DigitNet(nn.Module):
    def __init__(self, n_features=64, n_classes=10):
        super().__init__()
        self.fc1 = nn.Linear(n_features, 64)
        self.fc2 = nn.Linear(64, 32)
        self.out = nn.Linear(32, n_classes)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.out(x)


model = DigitNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

# %% training
EPOCHS, BATCH = 20, 64
history = []
for epoch in range(1, EPOCHS + 1):
    model.train()
    order = torch.randperm(len(x_tr))
    train_loss = 0.0
    for start in range(0, len(x_tr), BATCH):
        idx = order[start:start + BATCH]
        optimizer.zero_grad()
        loss = criterion(model(x_tr[idx]), y_tr[idx])
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(idx)

    model.eval()
    with torch.no_grad():
        scores = model(x_val)
        val_loss = criterion(scores, y_val).item()
        val_acc = (scores.argmax(1) == y_val).float().mean().item()
    history.append((train_loss / len(x_tr), val_loss, val_acc))
    if epoch % 4 == 0:
        print('Epoch {:2d} | train loss {:.4f} | val loss {:.4f} | val acc {:.3f}'.format(epoch, *history[-1]))

# %% report
print('final val loss %.4f, accuracy %.4f' % history[-1][1:])
