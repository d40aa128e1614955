"""A language model with AdaptiveLogSoftmaxWithLoss over a Zipf vocabulary, LSTM with projections, carried state."""
import math

import torch
import torch.nn as nn

V, B, T = 400, 8, 12


class ZipfLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(V, 32)
        self.lstm = nn.LSTM(32, 48, num_layers=2, proj_size=24, dropout=0.1, batch_first=True)
        self.crit = nn.AdaptiveLogSoftmaxWithLoss(24, V, cutoffs=[20, 100], div_value=2.0)

    def forward(self, tokens, targets, state):
        hidden, state = self.lstm(self.embed(tokens), state)
        out = self.crit(hidden.reshape(-1, 24), targets.reshape(-1))
        return out, state


def corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    p = 1 / torch.arange(1, V + 1).float()
    noise = torch.multinomial(p, n, replacement=True, generator=g)
    seq = [0]
    for k in range(n - 1):
        seq.append((seq[-1] * 3 + 1) % 37 if k % 3 else int(noise[k]))
    return torch.tensor(seq)


def batchify(seq):
    cols = len(seq) // B
    return seq[: cols * B].view(B, cols)


def repackage(h):
    return tuple(v.detach() for v in h) if h is not None else None


def run(model, stream, opt=None):
    model.train(opt is not None)
    total, count, state = 0.0, 0, None
    with torch.set_grad_enabled(opt is not None):
        for i in range(0, stream.size(1) - T - 1, T):
            state = repackage(state)
            (logp, loss), state = model(stream[:, i : i + T], stream[:, i + 1 : i + T + 1], state)
            if opt:
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                opt.step()
            total, count = total + loss.item(), count + 1
    return math.exp(total / count)


torch.manual_seed(9)
lm = ZipfLM()
optimizer = torch.optim.ASGD(lm.parameters(), lr=4.0, t0=60, lambd=0.0, weight_decay=1e-6)
train, valid = batchify(corpus(3000, 1)), batchify(corpus(800, 2))
for epoch in range(4):
    ppl = run(lm, train, optimizer)
    print(f"epoch {epoch} train ppl {ppl:.1f} valid ppl {run(lm, valid):.1f}")
