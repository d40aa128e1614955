# One-block character transformer as a pure function of a parameter dict
import torch
import torch.nn.functional as F

torch.manual_seed(31)
T, D, HEADS, BATCH, STEPS = 16, 32, 4, 32, 500

# corpus: arithmetic progressions modulo 26 written as letters, separated by dots
letters = 'abcdefghijklmnopqrstuvwxyz'
itos = ['.'] + list(letters)
V = len(itos)


all_rules = torch.cartesian_prod(torch.arange(26), torch.arange(26))[torch.randperm(26 * 26)]
train_rules, val_rules = all_rules[:560], all_rules[560:]       # (first letter, step)


def progression(rules, gen):
    start, step = rules[torch.randint(len(rules), (1,), generator=gen).item()].tolist()
    length = torch.randint(5, 9, (1,), generator=gen).item()
    return [1 + (start + step * k) % 26 for k in range(length)]


def corpus(rules, n, seed):
    gen, out = torch.Generator().manual_seed(seed), [0]
    for _ in range(n):
        out += progression(rules, gen) + [0]
    return torch.tensor(out)


train_ids, val_ids = corpus(train_rules, 3000, seed=1), corpus(val_rules, 400, seed=2)


def init():
    def w(*shape):
        return torch.randn(*shape) * shape[0] ** -0.5
    return {
        'tok': 0.3 * torch.randn(V, D), 'pos': 0.3 * torch.randn(T, D),
        'wq': w(D, D), 'wk': w(D, D), 'wv': w(D, D), 'wo': w(D, D),
        'w1': w(D, 4 * D), 'b1': torch.zeros(4 * D), 'w2': w(4 * D, D), 'b2': torch.zeros(D),
        'head': w(D, V),
    }


causal = torch.tril(torch.ones(T, T, dtype=torch.bool))


def norm(x):
    return F.layer_norm(x, (D,))


def attention(p, x):
    B, L, _ = x.shape
    q, k, v = ((x @ p[n]).view(B, L, HEADS, D // HEADS).transpose(1, 2) for n in ('wq', 'wk', 'wv'))
    scores = q @ k.transpose(-2, -1) / (D // HEADS) ** 0.5
    scores = scores.masked_fill(~causal[:L, :L], float('-inf'))
    out = F.softmax(scores, dim=-1) @ v
    return out.transpose(1, 2).reshape(B, L, D) @ p['wo']


def logits(p, ids):
    x = p['tok'][ids] + p['pos'][:ids.shape[1]]
    x = x + attention(p, norm(x))
    x = x + F.relu(norm(x) @ p['w1'] + p['b1']) @ p['w2'] + p['b2']
    return norm(x) @ p['head']


def nll(p, ids, starts):
    window = ids[starts[:, None] + torch.arange(T + 1)]
    return F.cross_entropy(logits(p, window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())


@torch.no_grad()
def val_nll(p):
    return nll(p, val_ids, torch.arange(0, len(val_ids) - T - 1, T)).item()


@torch.no_grad()
def completion_accuracy(p, n=200):
    """Give the first four letters of held-out progressions, let the model write the fifth."""
    gen = torch.Generator().manual_seed(3)
    seqs = torch.tensor([[0] + progression(val_rules, gen)[:5] for _ in range(n)])
    guess = logits(p, seqs[:, :5])[:, -1].argmax(-1)
    return (guess == seqs[:, 5]).float().mean().item()


params = init()
for t in params.values():
    t.requires_grad_()
opt = torch.optim.Adam(params.values(), lr=4e-3)
for step in range(1, STEPS + 1):
    loss = nll(params, train_ids, torch.randint(len(train_ids) - T - 1, (BATCH,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        print(f'step {step}: train nll {loss.item():.4f}, val nll {val_nll(params):.4f}')

print(f'val nll {val_nll(params):.4f}, completions right {100 * completion_accuracy(params):.1f} %')
