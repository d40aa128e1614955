"""A small causal transformer over characters; weights in one nested dict."""
import math
import os
import torch
import torch.nn.functional as F

text = open(os.environ['TRUESTEP_DATA'] + '/tinyshakespeare/input.txt').read()[:200_000]
alphabet = sorted(set(text))
lookup = {c: i for i, c in enumerate(alphabet)}
data = torch.tensor([lookup[c] for c in text])
cut = int(0.9 * len(data))
train_data, val_data = data[:cut], data[cut:]

V, D, HEADS, LAYERS, CTX = len(alphabet), 48, 4, 2, 32


def init(g):
    def mat(a, b, scale=1.0):
        return (torch.randn(a, b, generator=g) * scale / math.sqrt(a)).requires_grad_()

    def ones():
        return torch.ones(D, requires_grad=True)

    def zeros(n=D):
        return torch.zeros(n, requires_grad=True)

    blocks = [{'ln1': (ones(), zeros()), 'qkv': mat(D, 3 * D), 'proj': mat(D, D, 0.5),
               'ln2': (ones(), zeros()), 'up': mat(D, 4 * D), 'up_b': zeros(4 * D), 'down': mat(4 * D, D, 0.5),
               'down_b': zeros()} for _ in range(LAYERS)]
    return {'tok': mat(V, D), 'pos': mat(CTX, D), 'blocks': blocks, 'ln': (ones(), zeros()), 'head': mat(D, V)}


def leaves(tree):
    if isinstance(tree, torch.Tensor):
        yield tree
    else:
        for sub in (tree.values() if isinstance(tree, dict) else tree):
            yield from leaves(sub)


def attention(p, x):
    B, T, _ = x.shape
    q, k, v = (x @ p['qkv']).view(B, T, 3, HEADS, D // HEADS).permute(2, 0, 3, 1, 4)
    scores = q @ k.transpose(-1, -2) / math.sqrt(D // HEADS)
    mask = torch.tril(torch.ones(T, T, dtype=torch.bool))
    att = scores.masked_fill(~mask, float('-inf')).softmax(-1)
    return (att @ v).transpose(1, 2).reshape(B, T, D) @ p['proj']


def forward(P, idx):
    x = P['tok'][idx] + P['pos'][:idx.shape[1]]
    for p in P['blocks']:
        x = x + attention(p, F.layer_norm(x, (D,), *p['ln1']))
        h = F.layer_norm(x, (D,), *p['ln2'])
        x = x + F.gelu(h @ p['up'] + p['up_b']) @ p['down'] + p['down_b']
    return F.layer_norm(x, (D,), *P['ln']) @ P['head']


def get_batch(source, n, g):
    start = torch.randint(len(source) - CTX - 1, (n,), generator=g)
    x = torch.stack([source[s:s + CTX] for s in start])
    y = torch.stack([source[s + 1:s + CTX + 1] for s in start])
    return x, y


def loss_of(P, x, y):
    return F.cross_entropy(forward(P, x).flatten(0, 1), y.flatten())


g = torch.Generator().manual_seed(1337)
params = init(g)
opt = torch.optim.AdamW(leaves(params), lr=3e-3, weight_decay=0.01)
for step in range(151):
    loss = loss_of(params, *get_batch(train_data, 16, g))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 50 == 0:
        with torch.no_grad():
            val = sum(loss_of(params, *get_batch(val_data, 16, g)).item() for _ in range(5)) / 5
        print(f'step {step}: train {loss.item():.3f} val {val:.3f}')
