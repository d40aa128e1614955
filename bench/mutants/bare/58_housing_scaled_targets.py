import csv
import os
import torch

torch.manual_seed(0)
records = []
with open(os.path.join(os.environ['TRUESTEP_DATA'], 'housing', 'housing.csv')) as f:
    for row in csv.DictReader(f):
        records.append(row)
records = [records[i] for i in torch.randperm(len(records))[:8000].tolist()]
n_train, n_val = 6000, 1000
numeric = ['longitude', 'latitude', 'housing_median_age', 'total_rooms', 'total_bedrooms', 'population', 'households', 'median_income']
num = torch.tensor([[float(r[c]) if r[c] else float('nan') for c in numeric] for r in records])
# fill missing bedrooms with the median of the training rows
bed = num[:n_train, 4]
num[:, 4] = torch.nan_to_num(num[:, 4], nan=bed[~bed.isnan()].median().item())
num[:, 3:7] = num[:, 3:7].log1p()
kinds = sorted({r['ocean_proximity'] for r in records[:n_train]})
cat = torch.tensor([[float(r['ocean_proximity'] == k) for k in kinds] for r in records])
price = torch.tensor([[float(r['median_house_value'])] for r in records])

center, scale = num[:n_train].mean(0), num[:n_train].std(0)
x = torch.cat([(num - center) / scale, cat], 1)
y_mean, y_std = price[:n_train].mean(), price[:n_train].std()
y = (price - y_mean) / y_std
tr, va, te = torch.arange(n_train), torch.arange(n_train, n_train + n_val), torch.arange(n_train + n_val, len(x))

layers = []
for a, b in [(x.shape[1], 64), (64, 64), (64, 1)]:
    layers.append((torch.nn.init.kaiming_uniform_(torch.empty(a, b), mode='fan_out').requires_grad_(), torch.zeros(b, requires_grad=True)))


def predict(inp):
    for w, b in layers[:-1]:
        inp = torch.relu(inp @ w + b)
    return inp @ layers[-1][0] + layers[-1][1]


def dollars(rows):
    with torch.no_grad():
        back = predict(x[rows]) * y_std + y_mean
        return (back - price[rows]).abs().mean().item()


opt = torch.optim.Adam([t for pair in layers for t in pair], lr=2e-3)
steps_per_epoch = n_train // 100
for epoch in range(8):
    tr = tr[torch.randperm(n_train)]
    for i in range(steps_per_epoch):
        rows = tr[i * 100:(i + 1) * 100]
        loss = torch.nn.functional.huber_loss(predict(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f'epoch {epoch} last loss {loss.item():.4f} validation MAE ${dollars(va):,.0f}')
print(f'test MAE ${dollars(te):,.0f} (mean predictor ${(price[te] - y_mean).abs().mean().item():,.0f})')
