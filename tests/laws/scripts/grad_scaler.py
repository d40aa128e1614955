import torch
from _state import tell
from torch import nn

torch.manual_seed(6)
for dtype in (torch.float16, torch.float32):
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=5)
    for step in range(40):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16, enabled=dtype is torch.float16):
            loss = nn.functional.cross_entropy(model(torch.randn(8, 32)), torch.randint(0, 4, (8,)))
        scaler.scale(loss).backward()
        if step % 2:
            scaler.unscale_(optimizer)
            print(repr(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()))
        scaler.step(optimizer)
        scaler.update()
        print(step, repr(loss.item()), scaler.get_scale())
    tell(model, optimizer, scaler)
