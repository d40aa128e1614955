"""Assignment expressions in conditions and arguments."""

import torch
from torch import nn

net = nn.GRU(16, 32, batch_first=True)
head = nn.Linear(32, 5)
opt = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=1e-3)
stream, state = iter(chunks), None

while (chunk := next(stream, None)) is not None:
    x, y, fresh = chunk
    if fresh:
        state = None
    out, state = net(x, state)
    state = state.detach()  # broken[hidden-state-not-detached]: pass
    opt.zero_grad()
    (loss := nn.functional.cross_entropy(head(out).flatten(0, 1), y.flatten())).backward()  # broken[hidden-state-not-detached]: (loss := nn.functional.cross_entropy(head(out).flatten(0, 1), y.flatten())).backward(retain_graph=True)
    if (norm := nn.utils.clip_grad_norm_([*net.parameters(), *head.parameters()], 1.0)) > 100:
        print("large gradient", norm.item())
    opt.step()
    if (value := loss.item()) < 0.01:
        print("done", value)
        break
