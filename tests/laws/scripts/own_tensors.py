"""Data in a class of tensors that counts its calls: reads under supervision are not counted."""

import torch
from _state import tell
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Counted(torch.Tensor):
    calls = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Counted.calls += 1
        return super().__torch_function__(function, types, args, kwargs or {})


def collate(samples):
    return tuple(torch.stack(column).as_subclass(Counted) for column in zip(*samples, strict=True))


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.1)), nn.Linear(8, 3)

    def forward(self, batch):
        hidden = self.body(batch["x"])
        return self.head(hidden), {"hidden": hidden}


torch.manual_seed(9)
model = Pair()
optimizer, scaler = torch.optim.SGD(model.parameters(), 0.05), torch.amp.GradScaler("cpu")
data = TensorDataset(torch.randn(96, 4), torch.randint(0, 3, (96,)))
for scaled in (True, False):
    for epoch in range(3 if scaled else 12):
        for x, y in DataLoader(data, 8, collate_fn=collate):
            optimizer.zero_grad()
            scores, _ = model({"x": x})
            loss = nn.functional.cross_entropy(scores, y)
            if scaled:
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
            else:
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer) if scaled else optimizer.step()
            if scaled:
                scaler.update()
        print(Counted.calls, type(loss).__name__, repr(loss.item()))
Counted.calls = 0
model.eval()
with torch.no_grad():
    print(model({"x": data.tensors[0].as_subclass(Counted)})[0].sum().item(), Counted.calls)
tell(model, optimizer)
