# Logistic regression from scratch with torch.func: detect a rare class
import torch
from torch.func import grad_and_value

torch.manual_seed(6)


def make_data(n, gen):
    """Sensor readings; about one in eight comes from a faulty machine."""
    y = (torch.rand(n, generator=gen) < 0.125).float()
    x = torch.randn(n, 6, generator=gen)
    x[:, 0] += 1.4 * y
    x[:, 1] -= 1.0 * y
    x[:, 2] = x[:, 2] * (1 + 0.8 * y) + 0.6 * y
    return 10.0 + 3.0 * x, y


gen = torch.Generator().manual_seed(6)
x_train, y_train = make_data(3000, gen)
x_val, y_val = make_data(1000, gen)
center, spread = x_train.mean(0), x_train.std(0)
x_train, x_val = (x_train - center) / spread, (x_val - center) / spread


def features(x):
    return torch.cat([x, x ** 2 - 1], dim=1)


def linear(params, x):
    return features(x) @ params['w'] + params['b']


def log_loss(params, x, y):
    z = linear(params, x)
    # log(1 + exp(z)) - y z, written in the stable way
    nll = (torch.clamp(z, min=0) - y * z + torch.log1p(torch.exp(-z.abs()))).mean()
    return nll + 1e-4 * params['w'].square().sum()


def predict(params, x, threshold=0.5):
    return (torch.sigmoid(linear(params, x)) > threshold).float()


def report(name, params, x, y):
    y_hat = predict(params, x)
    tp = (y_hat * y).sum()
    precision = tp / y_hat.sum().clamp(min=1)
    recall = tp / y.sum()
    f1 = 2 * precision * recall / (precision + recall).clamp(min=1e-9)
    acc = (y_hat == y).float().mean()
    print(f'{name:5s} accuracy {acc:.4f} precision {precision:.4f} recall {recall:.4f} F1 {f1:.4f}')


params = {'w': torch.zeros(12), 'b': torch.zeros(())}
step_fn = grad_and_value(log_loss)

lr, batch_size, epochs = 0.1, 50, 30
for epoch in range(1, epochs + 1):
    order = torch.randperm(len(x_train))
    losses = []
    for idx in order.split(batch_size):
        grads, value = step_fn(params, x_train[idx], y_train[idx])
        params = {k: params[k] - lr * grads[k] for k in params}
        losses.append(value.item())
    if epoch % 10 == 0:
        print(f'epoch {epoch}: loss {sum(losses) / len(losses):.4f}, '
              f'validation loss {log_loss(params, x_val, y_val).item():.4f}')
        lr *= 0.5

report('train', params, x_train, y_train)
report('val', params, x_val, y_val)
