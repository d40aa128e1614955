"""The linear schedule with warm-up of language models, counted in steps, stepped after each epoch."""
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


def linear_schedule_with_warmup(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return step / max(1, warmup)
        return max(0.0, (total - step) / max(1, total - warmup))

    return LambdaLR(optimizer, factor)


tokens = torch.randint(0, 50, (240, 12))
labels = (tokens < 10).sum(1).clamp(max=3)
loader = DataLoader(TensorDataset(tokens, labels), batch_size=8, shuffle=True)
model = nn.Sequential(nn.EmbeddingBag(50, 16), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
epochs = 4
scheduler = linear_schedule_with_warmup(optimizer, warmup=60, total=epochs * len(loader))
for epoch in range(epochs):
    model.train()
    for batch, target in loader:
        loss = nn.functional.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    scheduler.step()  # error: scheduler-wrong-cadence
    print(epoch, loss.item())
