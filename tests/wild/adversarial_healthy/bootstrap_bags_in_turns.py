# two bags of a bootstrap from a data frame, trained in turns, each evaluated out of bag
import numpy as np, pandas as pd, torch
from torch import nn
torch.manual_seed(0)
def load():
    rng = np.random.default_rng(0)
    f = rng.normal(size=(800, 6)); y = f @ rng.normal(size=6) + .3 * rng.normal(size=800)
    return pd.DataFrame(np.column_stack([f, y]), columns=[*"abcdef", "y"])
class Member:
    def __init__(self, frame, seed):
        bag = frame.sample(len(frame), replace=True, random_state=seed)
        out = frame.drop(bag.index)
        self.x, self.y = (torch.tensor(bag[c].values, dtype=torch.float32) for c in ([*"abcdef"], ["y"]))
        self.oob_x, self.oob_y = (torch.tensor(out[c].values, dtype=torch.float32) for c in ([*"abcdef"], ["y"]))
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
        self.opt = torch.optim.Adam(self.net.parameters(), 3e-3)
    def epoch(self):
        self.net.train()
        for i in torch.randperm(len(self.x)).split(50):
            loss = nn.functional.mse_loss(self.net(self.x[i]), self.y[i])
            self.opt.zero_grad(); loss.backward(); self.opt.step()
    def oob(self):
        self.net.eval()
        with torch.no_grad(): return nn.functional.mse_loss(self.net(self.oob_x), self.oob_y).item()
frame = load()
members = [Member(frame, k) for k in range(2)]
for ep in range(12):
    for m in members: m.epoch()
    print(ep, [round(m.oob(), 3) for m in members])
