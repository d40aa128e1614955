# Chapter 3: softmax regression from scratch, but with one hidden layer added at the end.
# Data: the 8x8 digits that ship with scikit-learn.
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(42)

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X.astype(np.float32) / 16.0, y, test_size=0.25, random_state=0, stratify=y)
X_train, X_test = torch.from_numpy(X_train), torch.from_numpy(X_test)
y_train, y_test = torch.from_numpy(y_train), torch.from_numpy(y_test)

num_inputs, num_hiddens, num_outputs = 64, 48, 10
batch_size, num_epochs, lr = 32, 20, 0.1

W1 = (torch.randn(num_inputs, num_hiddens) * 0.1).requires_grad_(True)
b1 = torch.zeros(num_hiddens, requires_grad=True)
W2 = (torch.randn(num_hiddens, num_outputs) * 0.1).requires_grad_(True)
b2 = torch.zeros(num_outputs, requires_grad=True)
params = [W1, b1, W2, b2]


def relu(X):
    return torch.max(X, torch.zeros_like(X))


def softmax(O):
    O_exp = torch.exp(O - O.max(dim=1, keepdim=True).values)
    return O_exp / O_exp.sum(dim=1, keepdim=True)


def net(X):
    H = relu(X @ W1 + b1)
    return softmax(H @ W2 + b2)


def cross_entropy(y_hat, y):
    return -torch.log(y_hat[range(len(y_hat)), y] + 1e-12)


def accuracy(X, y):
    with torch.no_grad():
        return (net(X).argmax(dim=1) == y).float().mean().item()


def data_iter(batch_size, features, labels):
    num_examples = len(features)
    indices = torch.randperm(num_examples)
    for i in range(0, num_examples, batch_size):
        j = indices[i:i + batch_size]
        yield features[j], labels[j]


def zero_grad(params):
    for param in params:
        if param.grad is not None:
            param.grad.zero_()


def sgd(params, lr):
    """Minibatch stochastic gradient descent."""
    with torch.no_grad():
        for param in params:
            param -= lr * param.grad


for epoch in range(num_epochs):
    total_loss = 0.0
    for Xb, yb in data_iter(batch_size, X_train, y_train):
        l = cross_entropy(net(Xb), yb)
        zero_grad(params)
        l.mean().backward()
        sgd(params, lr)
        total_loss += l.sum().item()
    if (epoch + 1) % 5 == 0:
        print(f'epoch {epoch + 1}, loss {total_loss / len(X_train):.4f}, '
              f'train acc {accuracy(X_train, y_train):.3f}, test acc {accuracy(X_test, y_test):.3f}')

print(f'final test accuracy {accuracy(X_test, y_test):.4f}')
