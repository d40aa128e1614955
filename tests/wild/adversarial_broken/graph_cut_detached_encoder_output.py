"""Sequence to sequence: the encoder's state is detached before it goes to the decoder."""
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.GRU(4, 16, batch_first=True)
decoder = nn.GRU(4, 16, batch_first=True)
readout = nn.Linear(16, 4)
parameters = [*encoder.parameters(), *decoder.parameters(), *readout.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=3e-3)


def forward(source, target):
    _, state = encoder(source)
    out, _ = decoder(target, state.detach())  # error: graph-cut
    return readout(out)


for step in range(40):
    source = torch.randn(16, 6, 4)
    target = source.flip(1)
    loss = nn.functional.mse_loss(forward(source, target), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
