"""makenames: a character level MLP language model of first names, from scratch.

Bengio et al. 2003 with batch norm, all by hand: an embedding table C, two weight matrices, and the running
statistics that batch norm needs at inference.
"""

import os
import random

import torch
import torch.nn.functional as F

# ------------------------------------------------------------------------------------------------ the data set
names = open(os.path.join(os.environ["TRUESTEP_DATA"], "names", "names.txt")).read().splitlines()
words = sorted(set(names))  # some names are listed more than once
chars = sorted(set("".join(words)))
stoi = {s: i + 1 for i, s in enumerate(chars)}
stoi["."] = 0
itos = {i: s for s, i in stoi.items()}
vocab_size = len(itos)
block_size = 4  # how many characters are read to predict the next one


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


random.seed(42)
random.shuffle(words)
n1 = int(0.8 * len(words))
n2 = int(0.9 * len(words))
Xtr, Ytr = build_dataset(words[:n1])
Xdev, Ydev = build_dataset(words[n1:n2])
Xte, Yte = build_dataset(words[n2:])
print(f"train {tuple(Xtr.shape)} dev {tuple(Xdev.shape)} test {tuple(Xte.shape)}")

# ------------------------------------------------------------------------------------------------ the network
n_embd = 10
n_hidden = 100
g = torch.Generator().manual_seed(2147483647)
C = torch.randn((vocab_size, n_embd), generator=g)
W1 = torch.randn((n_embd * block_size, n_hidden), generator=g) * (5 / 3) / ((n_embd * block_size) ** 0.5)
W2 = torch.randn((n_hidden, vocab_size), generator=g) * 0.01
b2 = torch.zeros(vocab_size)
bngain = torch.ones((1, n_hidden))
bnbias = torch.zeros((1, n_hidden))
bnmean_running = torch.zeros((1, n_hidden))
bnvar_running = torch.ones((1, n_hidden))
parameters = [C, W1, W2, b2, bngain, bnbias]
for p in parameters:
    p.requires_grad = True
print("parameters:", sum(p.nelement() for p in parameters))


def hidden(Xb):
    emb = C[Xb]
    return emb.view(emb.shape[0], -1) @ W1


@torch.no_grad()
def predict(x):
    """Logits at inference, with the running statistics."""
    hpreact = (hidden(x) - bnmean_running) / torch.sqrt(bnvar_running + 1e-5)
    h = torch.tanh(bngain * hpreact + bnbias)
    return h @ W2 + b2


def split_loss(x, y):
    """Mean negative log likelihood of a character."""
    total = 0.0
    for xb, yb in zip(x.split(4096), y.split(4096)):
        total += F.cross_entropy(predict(xb), yb, reduction="sum").item()
    return total / len(y)


# ------------------------------------------------------------------------------------------------ optimization
max_steps = 3000
batch_size = 64
momentum = 0.05
lossi = []
for i in range(max_steps):
    ix = torch.randint(0, Xtr.shape[0], (batch_size,), generator=g)
    Xb, Yb = Xtr[ix], Ytr[ix]
    # forward pass
    hpreact = hidden(Xb)
    bnmeani = hpreact.mean(0, keepdim=True)
    bnvari = hpreact.var(0, keepdim=True, unbiased=False)
    h = torch.tanh(bngain * (hpreact - bnmeani) / torch.sqrt(bnvari + 1e-5) + bnbias)
    with torch.no_grad():
        bnmean_running = (1 - momentum) * bnmean_running + momentum * bnmeani
        bnvar_running = (1 - momentum) * bnvar_running + momentum * bnvari
    logits = h @ W2 + b2
    loss = F.cross_entropy(logits, Yb)
    # backward pass
    for p in parameters:
        p.grad = None
    loss.backward()
    # update
    lr = 0.2 if i < 2000 else 0.02
    for p in parameters:
        p.data -= lr * p.grad
    # track stats
    lossi.append(loss.item())
    if i % 600 == 599:
        recent = torch.tensor(lossi[-500:]).mean().item()
        print(f"{i + 1:5d}/{max_steps} train {recent:.4f} dev {split_loss(Xdev, Ydev):.4f}")

# ------------------------------------------------------------------------------------------------ results


def bigram_loss(x, y):
    """The same for counts of pairs, smoothed, as something to beat."""
    counts = torch.ones(vocab_size, vocab_size)
    counts.index_put_((Xtr[:, -1], Ytr), torch.tensor(1.0), accumulate=True)
    logp = (counts / counts.sum(1, keepdim=True)).log()
    return -logp[x[:, -1], y].mean().item()


@torch.no_grad()
def sample(n):
    out = []
    for _ in range(n):
        context, name = [0] * block_size, ""
        while len(name) < 20:
            probs = F.softmax(predict(torch.tensor([context])), dim=1)
            ix = torch.multinomial(probs, num_samples=1, generator=g).item()
            context = context[1:] + [ix]
            if ix == 0:
                break
            name += itos[ix]
        out.append(name)
    return out


for split, (x, y) in {"dev": (Xdev, Ydev), "test": (Xte, Yte)}.items():
    loss, bigram = split_loss(x, y), bigram_loss(x, y)
    top = (predict(x).argmax(1) == y).float().mean().item()
    perplexity = torch.tensor(loss).exp().item()
    print(f"{split:4s} loss {loss:.5f} perplexity {perplexity:.4f} top-1 {top:.4f} (bigram {bigram:.4f})")
made = sample(200)
known = set(words[:n1])
print("samples:", " ".join(made[:8]), f"in training: {sum(w in known for w in made) / len(made):.3f}")
