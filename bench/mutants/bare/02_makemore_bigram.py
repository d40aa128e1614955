import os
import torch
import torch.nn.functional as F

words = open(os.environ['TRUESTEP_DATA'] + '/names/names.txt').read().splitlines()[:6000]
chars = sorted(set(''.join(words)))
stoi = {s: i + 1 for i, s in enumerate(chars)}
stoi['.'] = 0
itos = {i: s for s, i in stoi.items()}

# the count model: the optimum that gradient descent should approach
N = torch.zeros((27, 27), dtype=torch.int32)
for w in words:
    chs = ['.'] + list(w) + ['.']
    for ch1, ch2 in zip(chs, chs[1:]):
        N[stoi[ch1], stoi[ch2]] += 1
P = (N + 1).float()
P /= P.sum(1, keepdim=True)

xs, ys = [], []
for w in words:
    chs = ['.'] + list(w) + ['.']
    for ch1, ch2 in zip(chs, chs[1:]):
        xs.append(stoi[ch1])
        ys.append(stoi[ch2])
xs = torch.tensor(xs)
ys = torch.tensor(ys)
num = xs.nelement()
print('number of examples:', num)
print('nll of the counts:', round(-P[xs, ys].log().mean().item(), 4))

g = torch.Generator().manual_seed(2147483647)
W = torch.randn((27, 27), generator=g, requires_grad=True)
xenc = F.one_hot(xs, num_classes=27).float()

# gradient descent, full batch
for k in range(60):
    logits = xenc @ W
    counts = logits.exp()
    probs = counts / counts.sum(1, keepdims=True)
    loss = -probs[torch.arange(num), ys].log().mean() + 0.001 * (W ** 2).mean()
    if k % 10 == 0:
        print(k, round(loss.item(), 4))
    W.grad = None
    loss.backward()
    W.data += -50 * W.grad
print('final', round(loss.item(), 4))

for i in range(5):
    out = []
    ix = 0
    while True:
        p = (F.one_hot(torch.tensor([ix]), num_classes=27).float() @ W).softmax(1)
        ix = torch.multinomial(p, 1, replacement=True, generator=g).item()
        out.append(itos[ix])
        if ix == 0:
            break
    print(''.join(out))
