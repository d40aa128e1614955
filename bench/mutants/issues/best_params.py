# small MLP on breast cancer, everything by hand; keep the weights of the best validation epoch
import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

torch.manual_seed(3)


def load():
    data, labels = load_breast_cancer(return_X_y=True)
    x_rest, x_te, y_rest, y_te = train_test_split(data, labels, test_size=0.3, random_state=5, stratify=labels)
    x_tr, x_va, y_tr, y_va = train_test_split(x_rest, y_rest, test_size=0.4, random_state=5, stratify=y_rest)
    x_tr, x_va, x_te = (torch.tensor(a, dtype=torch.float32) for a in (x_tr, x_va, x_te))
    y_tr, y_va, y_te = (torch.tensor(a, dtype=torch.float32) for a in (y_tr, y_va, y_te))
    mean, std = x_tr.mean(0), x_tr.std(0)
    return ((x_tr - mean) / std, y_tr), ((x_va - mean) / std, y_va), ((x_te - mean) / std, y_te)


def init_params(sizes):
    params = []
    for fan_in, fan_out in zip(sizes[:-1], sizes[1:]):
        w = torch.randn(fan_in, fan_out) * (2.0 / fan_in) ** 0.5
        params += [w.requires_grad_(), torch.zeros(fan_out, requires_grad=True)]
    return params


def forward(params, x):
    for w, b in zip(params[:-2:2], params[1:-2:2]):
        x = F.relu(x @ w + b)
    return (x @ params[-2] + params[-1]).squeeze(-1)


@torch.no_grad()
def evaluate(params, x, y):
    logits = forward(params, x)
    loss = F.binary_cross_entropy_with_logits(logits, y).item()
    acc = ((logits > 0).float() == y).float().mean().item()
    return loss, acc


train, val, test = load()
params = init_params([30, 64, 64, 1])
lr, batch_size, n_epochs = 0.2, 16, 80

best_val, best_params, best_epoch = float('inf'), None, -1
for epoch in range(n_epochs):
    perm = torch.randperm(len(train[0]))
    for i in range(0, len(perm), batch_size):
        ix = perm[i:i + batch_size]
        loss = F.binary_cross_entropy_with_logits(forward(params, train[0][ix]), train[1][ix])
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            for p, g in zip(params, grads):
                p -= lr * g
    val_loss, val_acc = evaluate(params, *val)
    if val_loss < best_val:
        best_val, best_epoch = val_loss, epoch
        best_params = [p.detach().clone() for p in params]
    if epoch % 10 == 0:
        print(f'{epoch:3d}: train {evaluate(params, *train)[0]:.4f} val {val_loss:.4f} val acc {val_acc:.3f}')

print(f'best epoch {best_epoch} with validation loss {best_val:.4f}')
val_loss, val_acc = evaluate(best_params, *val)
test_loss, test_acc = evaluate(best_params, *test)
print(f'kept weights: val loss {val_loss:.4f} | test loss {test_loss:.4f} | test acc {test_acc:.4f}')
