"""Healthy: a makemore-style MLP trained by hand: `p.data += -lr * p.grad`, `p.grad = None`, lr lowered by hand late in the run."""
import random

import torch
import torch.nn.functional as F

random.seed(42)
torch.set_num_threads(1)
syllables = ["ka", "mi", "to", "ra", "ne", "lu", "so", "vi", "el", "an", "dor", "wen", "bri", "os"]
words = sorted({"".join(random.choice(syllables) for _ in range(random.randint(2, 4))) for _ in range(260)})

chars = sorted(set("".join(words)))
stoi = {s: i + 1 for i, s in enumerate(chars)}
stoi["."] = 0
itos = {i: s for s, i in stoi.items()}
vocab_size = len(itos)
block_size = 3


def build_dataset(words):
    X, Y = [], []
    for w in words:
        context = [0] * block_size
        for ch in w + ".":
            ix = stoi[ch]
            X.append(context)
            Y.append(ix)
            context = context[1:] + [ix]
    return torch.tensor(X), torch.tensor(Y)


random.shuffle(words)
n1 = int(0.85 * len(words))
Xtr, Ytr = build_dataset(words[:n1])
Xdev, Ydev = build_dataset(words[n1:])

g = torch.Generator().manual_seed(2147483647)
C = torch.randn((vocab_size, 8), generator=g)
W1 = torch.randn((block_size * 8, 64), generator=g) * (5 / 3) / (block_size * 8) ** 0.5
b1 = torch.randn(64, generator=g) * 0.01
W2 = torch.randn((64, vocab_size), generator=g) * 0.01
b2 = torch.zeros(vocab_size)
parameters = [C, W1, b1, W2, b2]
for p in parameters:
    p.requires_grad = True
print(sum(p.nelement() for p in parameters), "parameters")

lossi = []
for i in range(400):
    # minibatch construct
    ix = torch.randint(0, Xtr.shape[0], (48,), generator=g)
    # forward pass
    emb = C[Xtr[ix]]
    h = torch.tanh(emb.view(-1, block_size * 8) @ W1 + b1)
    logits = h @ W2 + b2
    loss = F.cross_entropy(logits, Ytr[ix])
    # backward pass
    for p in parameters:
        p.grad = None
    loss.backward()
    # update
    lr = 0.2 if i < 300 else 0.05
    for p in parameters:
        p.data += -lr * p.grad
    lossi.append(loss.item())


@torch.no_grad()
def split_loss(x, y):
    h = torch.tanh(C[x].view(-1, block_size * 8) @ W1 + b1)
    return F.cross_entropy(h @ W2 + b2, y).item()


print(f"first {lossi[0]:.3f} train {split_loss(Xtr, Ytr):.4f} dev {split_loss(Xdev, Ydev):.4f}")
