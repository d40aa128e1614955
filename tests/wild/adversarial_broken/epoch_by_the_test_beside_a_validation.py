"""A table of epochs as a report prints it: the state to keep is chosen by the test, and the validation is only printed."""

import copy

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from torch import nn

torch.manual_seed(5)
x, y = load_breast_cancer(return_X_y=True)
x_train, x_rest, y_train, y_rest = train_test_split(x, y, train_size=0.6, random_state=0)
x_val, x_test, y_val, y_test = train_test_split(x_rest, y_rest, test_size=0.5, random_state=0)
mean, std = x_train.mean(0), x_train.std(0)


def tensors(inputs, labels):
    return torch.tensor((inputs - mean) / std, dtype=torch.float32), torch.tensor(labels)


train, val, test = tensors(x_train, y_train), tensors(x_val, y_val), tensors(x_test, y_test)
model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def loss_on(data):
    model.eval()
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(data[0]), data[1]).item()
    model.train()
    return loss


lowest = float("inf")
for epoch in range(12):
    for rows in torch.randperm(len(train[0])).split(32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(train[0][rows]), train[1][rows]).backward()
        optimizer.step()
    val_loss, test_loss = loss_on(val), loss_on(test)
    print(f"{epoch:3} {val_loss:.4f} {test_loss:.4f}")
    if test_loss < lowest:  # error: chosen-without-validation
        lowest, state = test_loss, copy.deepcopy(model.state_dict())
model.load_state_dict(state)
print(f"test {loss_on(test):.4f}")
