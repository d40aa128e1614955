# Bigger context than bigrams: embedding + hidden layer, in the manner of Bengio et al. 2003
import torch
import torch.nn.functional as F

torch.manual_seed(12)

# --- corpus: words with vowel harmony
FRONT, BACK, CONS = 'eiy', 'aou', 'bdgklmnprst'
rng = torch.Generator().manual_seed(5)


def pick(s):
    return s[torch.randint(len(s), (1,), generator=rng).item()]


def word():
    vowels = FRONT if torch.rand(1, generator=rng).item() < 0.5 else BACK
    n = torch.randint(2, 4, (1,), generator=rng).item()
    return ''.join(pick(CONS) + pick(vowels) for _ in range(n))


words = list(dict.fromkeys(word() for _ in range(2500)))
itos = ['.'] + sorted(FRONT + BACK + CONS)
stoi = {c: i for i, c in enumerate(itos)}
V, CTX = len(itos), 4


def encode(ws):
    xs, ys = [], []
    for w in ws:
        ctx = [0] * CTX
        for c in w + '.':
            xs.append(ctx)
            ys.append(stoi[c])
            ctx = ctx[1:] + [stoi[c]]
    return torch.tensor(xs), torch.tensor(ys)


cut = int(0.85 * len(words))
Xtr, Ytr = encode(words[:cut])
Xva, Yva = encode(words[cut:])


# --- model
def init(emb=4, hidden=48):
    return {
        'C': torch.randn(V, emb),
        'W1': torch.randn(CTX * emb, hidden) * (CTX * emb) ** -0.5,
        'b1': torch.zeros(hidden),
        'W2': torch.randn(hidden, V) * 0.05,
        'b2': torch.zeros(V),
    }


def logits_fn(p, x):
    e = p['C'][x].flatten(1)
    h = torch.tanh(e @ p['W1'] + p['b1'])
    return h @ p['W2'] + p['b2']


p = init()
trainable = [p['C'], p['W1'], p['b1'], p['W2'], p['b2']]
for t in trainable:
    t.requires_grad_()
print('trainable numbers:', sum(t.numel() for t in trainable))

# --- optimisation
steps, B = 3000, 64
loss_sum = 0.0
for step in range(1, steps + 1):
    ix = torch.randint(len(Xtr), (B,))
    loss = F.cross_entropy(logits_fn(p, Xtr[ix]), Ytr[ix])
    for t in trainable:
        t.grad = None
    loss.backward()
    lr = 0.3 if step <= 2000 else 0.05
    with torch.no_grad():
        for t in trainable:
            t -= lr * t.grad
    loss_sum += loss.item()
    if step % 600 == 0:
        print(f'step {step}: mean loss of the last 600 steps {loss_sum / 600:.4f}')
        loss_sum = 0.0

with torch.no_grad():
    tr = F.cross_entropy(logits_fn(p, Xtr), Ytr).item()
    va = F.cross_entropy(logits_fn(p, Xva), Yva).item()
print(f'train nll {tr:.4f}, validation nll {va:.4f}')
