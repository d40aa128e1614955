import csv
import os
import torch

CONT = [0, 4, 10, 11, 12]
CAT = [1, 3, 5, 6, 7, 8, 9]


def read(path):
    rows = []
    with open(path) as f:
        for row in csv.reader(f, skipinitialspace=True):
            if len(row) == 15:
                rows.append(row)
    return rows


base = os.path.join(os.environ['TRUESTEP_DATA'], 'adult')
train_rows = read(base + '/adult-train.csv')[:12000]
test_rows = read(base + '/adult-test.csv')[:4000]

# categories come from the training rows; an unseen one gets all zeros
vocab = []
for c in CAT:
    for v in sorted({r[c] for r in train_rows}):
        vocab.append((c, v))
col = {cv: i for i, cv in enumerate(vocab)}


def encode(rows):
    num = torch.tensor([[float(r[c]) for c in CONT] for r in rows])
    num[:, 2:4] = torch.log1p(num[:, 2:4])
    cat = torch.zeros(len(rows), len(vocab))
    for i, r in enumerate(rows):
        for c in CAT:
            j = col.get((c, r[c]))
            if j is not None:
                cat[i, j] = 1
    y = torch.tensor([1.0 if r[14].startswith('>50K') else 0.0 for r in rows])
    return num, cat, y


num_tr, cat_tr, y_tr = encode(train_rows)
num_te, cat_te, y_te = encode(test_rows)
mu, sd = num_tr.mean(0), num_tr.std(0)
x_tr = torch.cat([(num_tr - mu) / sd, cat_tr], 1)
x_te = torch.cat([(num_te - mu) / sd, cat_te], 1)

w = torch.zeros(x_tr.shape[1], requires_grad=True)
b = torch.zeros((), requires_grad=True)
l2 = 1e-4
for it in range(200):
    z = x_tr @ w + b
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y_tr) + l2 * w.pow(2).sum()
    gw, gb = torch.autograd.grad(loss, (w, b))
    with torch.no_grad():
        w -= 0.8 * gw
        b -= 0.8 * gb
    if it % 40 == 0:
        print(it, f'{loss.item():.4f}')

with torch.no_grad():
    p = torch.sigmoid(x_te @ w + b)
    acc = ((p > 0.5).float() == y_te).float().mean().item()
    print(f'base rate {1 - y_te.mean().item():.3f}  test accuracy {acc:.3f}')
