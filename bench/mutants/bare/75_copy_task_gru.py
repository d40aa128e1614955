"""Sequence copying with a GRU cell written by hand and masked loss over the recall positions."""
import torch
import torch.nn.functional as F

torch.manual_seed(0)
SYMBOLS, LENGTH, DELAY = 5, 3, 3
BLANK, GO = SYMBOLS, SYMBOLS + 1
VOCAB, H = SYMBOLS + 2, 48
TOTAL = LENGTH + DELAY + 1 + LENGTH


def copy_batch(n, g):
    word = torch.randint(SYMBOLS, (n, LENGTH), generator=g)
    x = torch.full((n, TOTAL), BLANK)
    x[:, :LENGTH] = word
    x[:, LENGTH + DELAY] = GO
    y = torch.full((n, TOTAL), -100)
    y[:, -LENGTH:] = word
    return x, y


class GRUWeights:
    def __init__(self):
        s = H ** -0.5
        self.emb = torch.randn(VOCAB, 16)
        self.w = torch.empty(16 + H, 2 * H).uniform_(-s, s)
        self.b = torch.cat([torch.zeros(H), torch.ones(H)])
        self.wc = torch.empty(16 + H, H).uniform_(-s, s)
        self.out = torch.empty(H, SYMBOLS).uniform_(-s, s)
        for t in self:
            t.requires_grad_()

    def __iter__(self):
        return iter((self.emb, self.w, self.b, self.wc, self.out))


def unroll(p, x):
    h = torch.zeros(len(x), H)
    ys = []
    for t in range(TOTAL):
        e = p.emb[x[:, t]]
        r, z = torch.sigmoid(torch.cat([e, h], 1) @ p.w + p.b).chunk(2, 1)
        c = torch.tanh(torch.cat([e, r * h], 1) @ p.wc)
        h = z * h + (1 - z) * c
        ys.append(h @ p.out)
    return torch.stack(ys, 1)


train_g, test_g = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
x_test, y_test = copy_batch(200, test_g)
p = GRUWeights()
opt = torch.optim.Adam(p, lr=1e-2)
for step in range(401):
    x, y = copy_batch(64, train_g)
    loss = F.cross_entropy(unroll(p, x).flatten(0, 1), y.flatten(), ignore_index=-100)
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(list(p), 1.0)
    opt.step()
    if step % 100 == 0:
        with torch.no_grad():
            guess = unroll(p, x_test).argmax(-1)[:, -LENGTH:]
        print(f'step {step} loss {loss.item():.4f} symbols right {(guess == y_test[:, -LENGTH:]).float().mean().item():.3f}')
