"""Train a classifier, export it and save it: what is the accuracy of the loaded program?"""

import io
import sys

import torch
from torch import nn
from torch.nn import functional as F

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

x = torch.randn(1200, 20)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for _step in range(300):
    rows = torch.randint(1000, (50,))
    optimizer.zero_grad()
    F.cross_entropy(model(x[rows]), y[rows]).backward()
    optimizer.step()

model.eval()
program = torch.export.export(model, (x[1000:],))
file = io.BytesIO()
torch.export.save(program, file)
file.seek(0)
loaded = torch.export.load(file).module()
with torch.no_grad():
    print(f"result: {(loaded(x[1000:]).argmax(1) == y[1000:]).float().mean():.4f}")
