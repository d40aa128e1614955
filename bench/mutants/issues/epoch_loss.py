import copy
import math

import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(2)

X, y = load_breast_cancer(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, random_state=2, stratify=y)
scaler = StandardScaler().fit(X_train)
splits = {
    'train': (torch.tensor(scaler.transform(X_train)).float(), torch.tensor(y_train).float()),
    'val': (torch.tensor(scaler.transform(X_val)).float(), torch.tensor(y_val).float()),
}
dataset_sizes = {k: len(v[1]) for k, v in splits.items()}
BATCH = {'train': 32, 'val': 128}

model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def iterate(phase):
    X, y = splits[phase]
    order = torch.randperm(len(X)) if phase == 'train' else torch.arange(len(X))
    for idx in order.split(BATCH[phase]):
        yield X[idx], y[idx]


def train_model(model, num_epochs=25):
    best_loss, best_weights = math.inf, copy.deepcopy(model.state_dict())
    for epoch in range(num_epochs):
        stats = {}
        for phase in ('train', 'val'):
            model.train(phase == 'train')
            running_loss, running_corrects = 0.0, 0
            for inputs, labels in iterate(phase):
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == 'train'):
                    logits = model(inputs).squeeze(1)
                    loss = criterion(logits, labels)
                    if phase == 'train':
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += ((logits > 0) == (labels > 0.5)).sum().item()
            epoch_loss = running_loss / dataset_sizes[phase]
            epoch_acc = running_corrects / dataset_sizes[phase]
            stats[phase] = (epoch_loss, epoch_acc)
            if phase == 'val' and epoch_loss < best_loss:
                best_loss, best_weights = epoch_loss, copy.deepcopy(model.state_dict())
        if epoch % 5 == 4:
            print(f'Epoch {epoch + 1}/{num_epochs}', ' '.join(
                f'{p}: loss {l:.5f} acc {a:.4f}' for p, (l, a) in stats.items()))
    model.load_state_dict(best_weights)
    return model, best_loss


model, best = train_model(model)
print(f'Best val loss: {best:.5f}')
