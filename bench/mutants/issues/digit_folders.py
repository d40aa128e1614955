# %% Minibatch training "by hand": MLP on digits that are read class by class
import torch
from sklearn.datasets import load_digits

torch.manual_seed(5)


# %% stand-in for a folder per class; the last fifth of every folder is kept for validation
def read_class(k, digits):
    images = torch.tensor(digits.data[digits.target == k], dtype=torch.float32) / 16
    cut = int(0.8 * len(images))
    return images[:cut], images[cut:]


digits = load_digits()
folders = [read_class(k, digits) for k in range(10)]
train_features = torch.cat([tr for tr, _ in folders])
val_features = torch.cat([va for _, va in folders])
train_labels = torch.cat([torch.full((len(tr),), k) for k, (tr, _) in enumerate(folders)])
val_labels = torch.cat([torch.full((len(va),), k) for k, (_, va) in enumerate(folders)])
print(len(train_labels), 'training and', len(val_labels), 'validation images')

# %% parameters
num_inputs, num_hiddens, num_outputs = 64, 32, 10
W1 = torch.normal(0, 0.2, (num_inputs, num_hiddens), requires_grad=True)
b1 = torch.zeros(num_hiddens, requires_grad=True)
W2 = torch.normal(0, 0.2, (num_hiddens, num_outputs), requires_grad=True)
b2 = torch.zeros(num_outputs, requires_grad=True)


# %% model, loss, updater
def net(X):
    return torch.tanh(X @ W1 + b1) @ W2 + b2


def loss(y_hat, y):
    log_p = y_hat - torch.logsumexp(y_hat, dim=1, keepdim=True)
    return -log_p.gather(1, y.unsqueeze(1)).squeeze(1)


def data_iter(batch_size, features, labels):
    num_examples = len(features)
    indices = torch.randperm(num_examples)
    for i in range(0, num_examples, batch_size):
        j = indices[i:i + batch_size]
        yield features[j], labels[j]


def sgd(params, lr):
    with torch.no_grad():
        for param in params:
            param -= lr * param.grad
            param.grad.zero_()


# %% training
lr, num_epochs, batch_size = 0.1, 20, 64
for epoch in range(num_epochs):
    epoch_loss = 0.0
    for X, y in data_iter(batch_size, train_features, train_labels):
        l = loss(net(X), y)
        l.mean().backward()
        sgd([W1, b1, W2, b2], lr)
        epoch_loss += l.sum().item()
    if (epoch + 1) % 5 == 0:
        with torch.no_grad():
            val_l = loss(net(val_features), val_labels).mean().item()
        print(f'epoch {epoch + 1}, loss {epoch_loss / len(train_labels):.4f}, val loss {val_l:.4f}')

# %% evaluation
with torch.no_grad():
    pred = net(val_features).argmax(dim=1)
acc = (pred == val_labels).float().mean().item()
per_class = [(pred[val_labels == k] == k).float().mean().item() for k in range(10)]
print(f'validation accuracy {acc:.4f}')
print('per class', ' '.join(f'{a:.2f}' for a in per_class))
