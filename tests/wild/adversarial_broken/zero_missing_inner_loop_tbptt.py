"""Truncated BPTT: zero_grad stands before the loop over the chunks of a sequence."""
import torch
from torch import nn

torch.manual_seed(0)
rnn, out = nn.LSTM(1, 16, batch_first=True), nn.Linear(16, 1)
params = [*rnn.parameters(), *out.parameters()]
opt = torch.optim.SGD(params, lr=0.05)
opt.zero_grad()
series = torch.sin(torch.arange(0, 60, 0.1)).view(6, 100, 1)
for epoch in range(4):
    state = None
    for chunk in series.split(20, dim=1):
        prediction, state = rnn(chunk[:, :-1], state)
        state = tuple(s.detach() for s in state)
        loss = nn.functional.mse_loss(out(prediction), chunk[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()  # error: missing-zero-grad
    print(epoch, loss.item())
