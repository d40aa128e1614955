import csv
import os
import torch

torch.manual_seed(0)
path = os.path.join(os.environ['TRUESTEP_DATA'], 'jbrownlee', 'daily-min-temperatures.csv')
with open(path) as f:
    series = torch.tensor([float(r['Temp']) for r in csv.DictReader(f)])
n_train = int(len(series) * 0.8)
mu, sigma = series[:n_train].mean(), series[:n_train].std()
z = (series - mu) / sigma

W = 20


def windows(seq):
    u = seq.unfold(0, W + 1, 1)
    return u[:, :W].unsqueeze(-1), u[:, W]


# chronological split; the test windows start after the last training day
x_train, y_train = windows(z[:n_train])
x_test, y_test = windows(z[n_train:])

H = 24


def make_lstm(n_in, hidden):
    k = hidden ** -0.5
    w = torch.empty(n_in + hidden, 4 * hidden).uniform_(-k, k).requires_grad_()
    b = torch.zeros(4 * hidden)
    b[hidden:2 * hidden] = 1.0      # forget gate open at the start
    return {'w': w, 'b': b.requires_grad_(),
            'out_w': torch.empty(hidden, 1).uniform_(-k, k).requires_grad_(),
            'out_b': torch.zeros(1, requires_grad=True)}


def lstm(p, x):
    h = x.new_zeros(len(x), H)
    c = x.new_zeros(len(x), H)
    for t in range(x.shape[1]):
        i, f, g, o = (torch.cat([x[:, t], h], 1) @ p['w'] + p['b']).chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return (h @ p['out_w'] + p['out_b']).squeeze(-1)


params = make_lstm(1, H)
opt = torch.optim.Adam(params.values(), lr=5e-3)
for epoch in range(4):
    se = 0.0
    for idx in torch.randperm(len(x_train)).split(64):
        err = lstm(params, x_train[idx]) - y_train[idx]
        loss = err.square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        se += loss.item() * len(idx)
    print(f'epoch {epoch}: train mse {se / len(x_train):.4f}')
with torch.no_grad():
    pred = lstm(params, x_test) * sigma + mu
    truth = y_test * sigma + mu
    naive = x_test[:, -1, 0] * sigma + mu
    print(f'test MAE {(pred - truth).abs().mean().item():.3f} C, persistence {(naive - truth).abs().mean().item():.3f} C')
