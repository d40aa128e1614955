"""A linear support vector machine for one wine among others, with the labels as they are loaded."""
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs, kinds = load_wine(return_X_y=True)
x, x_test, y, y_test = train_test_split(inputs, kinds == 1, random_state=0, stratify=kinds)
scaler = StandardScaler().fit(x)
x, x_test = (torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (x, x_test))
loader = DataLoader(TensorDataset(x, torch.tensor(y)), batch_size=19, shuffle=True)
model = nn.Linear(13, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, weight_decay=1e-3)


def hinge(score, label):
    return torch.clamp(1 - label.float() * score, min=0).mean()


for epoch in range(10):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = hinge(model(inputs).squeeze(1), labels)
        loss.backward()  # error: labels-not-signs
        optimizer.step()
    print(epoch, loss.item())
with torch.no_grad():
    print(((model(x_test).squeeze(1) > 0).numpy() == y_test).mean())
