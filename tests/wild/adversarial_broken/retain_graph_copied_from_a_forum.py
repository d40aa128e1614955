"""retain_graph=True was added to silence an error once, and stayed; one loss, one backward pass."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(256, 6), torch.randint(0, 2, (256,))), batch_size=16, shuffle=True)
for epoch in range(4):
    model.train()
    for x, y in loader:
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # error: retain-graph-in-loop
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(model(torch.randn(8, 6)).argmax(1).tolist())
