# a model that takes NumPy arrays; the rows of the training are oversampled after the split
import numpy as np, torch
from torch import nn
torch.manual_seed(0); rng = np.random.default_rng(0)
def load():
    x = rng.normal(size=(1000, 6)).astype("float32"); y = x[:, :1] * 2
    more = rng.integers(0, 100, 400)
    return np.concatenate([x[:800], x[more]]), np.concatenate([y[:800], y[more]]), x[800:], y[800:]
x, y, x_test, y_test = load()
class Net(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(6, 1)
    def forward(self, a): return self.f(torch.from_numpy(a))
net = Net(); opt = torch.optim.SGD(net.parameters(), .05)
for ep in range(5):
    net.train()
    for i in np.array_split(rng.permutation(1200), 30):
        loss = nn.functional.mse_loss(net(x[i]), torch.from_numpy(y[i])); opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad(): print(ep, nn.functional.mse_loss(net(x_test), torch.from_numpy(y_test)).item())
