# a dict of the latest and the best model: at first these are one object
import torch, copy
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
models = {"last": net, "best": net}
x = torch.randn(600, 6); y = x[:, :1].sin(); x_val, y_val = x[500:], y[500:]
opt = torch.optim.Adam(net.parameters(), 3e-3); low = 1e9
for ep in range(10):
    for i in torch.randperm(500).split(50):
        loss = nn.functional.mse_loss(net(x[i]), y[i])
        opt.zero_grad(); loss.backward(); opt.step()
    with torch.no_grad():
        scores = {k: nn.functional.mse_loss(m(x_val), y_val).item() for k, m in models.items()}
    if scores["last"] < low: low = scores["last"]; models["best"] = copy.deepcopy(net)
    print(ep, scores)
