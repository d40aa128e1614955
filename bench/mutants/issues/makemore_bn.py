# makemore, part 3: character MLP with batch normalisation written out by hand
import random

import torch
import torch.nn.functional as F

random.seed(42)
g = torch.Generator().manual_seed(2147483647)

# a small artificial language instead of names.txt
onsets = ['k', 'm', 'n', 'r', 's', 't', 'l', 'br', 'gr', 'v', 'sh', 'd']
vowels = ['a', 'e', 'i', 'o', 'u', 'ia']
codas = ['', '', 'n', 'l', 's', 'x']


def make_word():
    sylls = [random.choice(onsets) + random.choice(vowels) for _ in range(random.randint(1, 3))]
    return ''.join(sylls) + random.choice(codas)


words = sorted({make_word() for _ in range(4000)})
random.shuffle(words)

chars = sorted(set(''.join(words)))
stoi = {s: i + 1 for i, s in enumerate(chars)}
stoi['.'] = 0
vocab_size, block_size = len(stoi), 3


def build_dataset(words):
    X, Y = [], []
    for w in words:
        context = [0] * block_size
        for ch in w + '.':
            X.append(context)
            Y.append(stoi[ch])
            context = context[1:] + [stoi[ch]]
    return torch.tensor(X), torch.tensor(Y)


n1, n2 = int(0.8 * len(words)), int(0.9 * len(words))
Xtr, Ytr = build_dataset(words[:n1])
Xdev, Ydev = build_dataset(words[n1:n2])
Xte, Yte = build_dataset(words[n2:])
print(f'{len(words)} words, {len(Xtr)} / {len(Xdev)} / {len(Xte)} examples, vocab {vocab_size}')

# parameters
n_embd, n_hidden = 8, 64
C = torch.randn((vocab_size, n_embd), generator=g)
W1 = torch.randn((n_embd * block_size, n_hidden), generator=g) * (5 / 3) / (n_embd * block_size) ** 0.5
W2 = torch.randn((n_hidden, vocab_size), generator=g) * 0.01
b2 = torch.zeros(vocab_size)
bngain, bnbias = torch.ones((1, n_hidden)), torch.zeros((1, n_hidden))
bnmean_running, bnstd_running = torch.zeros((1, n_hidden)), torch.ones((1, n_hidden))
parameters = [C, W1, W2, b2, bngain, bnbias]
for p in parameters:
    p.requires_grad = True

# training
max_steps, batch_size, momentum = 3000, 32, 0.02
for i in range(max_steps):
    ix = torch.randint(0, Xtr.shape[0], (batch_size,), generator=g)
    hpreact = C[Xtr[ix]].view(batch_size, -1) @ W1
    bnmeani, bnstdi = hpreact.mean(0, keepdim=True), hpreact.std(0, keepdim=True)
    h = torch.tanh(bngain * (hpreact - bnmeani) / (bnstdi + 1e-5) + bnbias)
    loss = F.cross_entropy(h @ W2 + b2, Ytr[ix])
    with torch.no_grad():
        bnmean_running = (1 - momentum) * bnmean_running + momentum * bnmeani
        bnstd_running = (1 - momentum) * bnstd_running + momentum * bnstdi

    for p in parameters:
        p.grad = None
    loss.backward()
    lr = 0.1 if i < 2000 else 0.01
    for p in parameters:
        p.data += -lr * p.grad
    if i % 500 == 0:
        print(f'{i:5d}/{max_steps}: {loss.item():.4f}')


@torch.no_grad()
def nll_per_word(words):
    """Mean negative log likelihood of whole words, one word at a time."""
    total = 0.0
    for w in words:
        X, Y = build_dataset([w])
        hpreact = C[X].view(X.shape[0], -1) @ W1
        mean, std = bnmean_running, bnstd_running
        h = torch.tanh(bngain * (hpreact - mean) / (std + 1e-5) + bnbias)
        total += F.cross_entropy(h @ W2 + b2, Y, reduction='sum').item()
    return total / len(words)


print(f'nll per word: train {nll_per_word(words[:400]):.4f}, '
      f'dev {nll_per_word(words[n1:n2]):.4f}, test {nll_per_word(words[n2:]):.4f}')
