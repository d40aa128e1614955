import torch
from _state import tell
from torch import nn

torch.manual_seed(4)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5))
model(torch.zeros(1, 1, 6, 6))
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
data = torch.utils.data.TensorDataset(torch.randn(50, 1, 6, 6), torch.randint(0, 5, (50,)))
accumulate = 4
for epoch in range(3):
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    for batch, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y, reduction="sum") / (4 * accumulate)
        loss.backward(retain_graph=batch == 2)
        print(epoch, batch, repr(loss.item()))
        if (batch + 1) % accumulate == 0 or batch + 1 == len(loader):
            optimizer.step()
            for p in model.parameters():
                p.grad = None
    model.eval()
    with torch.inference_mode():
        print(repr(nn.functional.nll_loss(model(data.tensors[0]).log_softmax(1), data.tensors[1]).item()))
    model.train()
tell(model, optimizer)
