"""Ordinary evaluation without dropout, and on purpose MC dropout: many stochastic passes averaged."""
import torch
import torch.nn.functional as F

torch.manual_seed(8)


def f(x):
    return x.sin() + 0.4 * (2 * x).cos()


x_train = torch.cat([torch.rand(150, 1) * 3 - 4, torch.rand(150, 1) * 3 + 1])
y_train = f(x_train) + 0.1 * torch.randn_like(x_train)
x_test = torch.cat([torch.rand(50, 1) * 3 - 4, torch.rand(50, 1) * 3 + 1])
y_test = f(x_test)

W = [torch.randn(1, 64), torch.randn(64) * 0.5, torch.randn(64, 64) / 8, torch.zeros(64), torch.randn(64, 1) / 8, torch.zeros(1)]
for w in W:
    w.requires_grad_()


def forward(x, train=False, p=0.1):
    h = torch.relu(x @ W[0] + W[1])
    h = F.dropout(h, p, training=train)
    h = torch.relu(h @ W[2] + W[3])
    h = F.dropout(h, p, training=train)
    return h @ W[4] + W[5]


optimizer = torch.optim.Adam(W, lr=3e-3, weight_decay=1e-5)
for epoch in range(150):
    for rows in torch.randperm(300).split(100):
        loss = F.mse_loss(forward(x_train[rows], train=True), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 50 == 49:
        with torch.no_grad():
            print(f'epoch {epoch + 1} train {loss.item():.4f} test mse {F.mse_loss(forward(x_test), y_test).item():.4f}')


@torch.no_grad()
def mc_dropout_predict(x, samples=50):
    draws = torch.stack([forward(x, train=True) for _ in range(samples)])
    return draws.mean(0), draws.std(0)


mean, std_in = mc_dropout_predict(x_test)
_, std_gap = mc_dropout_predict(torch.linspace(-0.8, 0.8, 20)[:, None])
_, std_out = mc_dropout_predict(torch.linspace(6, 8, 20)[:, None])
print(f'MC mean mse {F.mse_loss(mean, y_test).item():.4f}')
print(f'uncertainty: near the data {std_in.mean().item():.3f}, gap {std_gap.mean().item():.3f}, far {std_out.mean().item():.3f}')
