"""Pretrained (here: SVD of co-occurrences) word vectors stay frozen; only the head is trained."""
import os
import torch
import torch.nn.functional as F

torch.manual_seed(0)
root = os.path.join(os.environ['TRUESTEP_DATA'], 'rt-polarity')


def read(name):
    with open(os.path.join(root, name), encoding='latin-1') as f:
        return [line.split() for line in f][:2500]


sentences = [(s, 1) for s in read('rt-polarity.pos')] + [(s, 0) for s in read('rt-polarity.neg')]
order = torch.randperm(len(sentences)).tolist()
sentences = [sentences[i] for i in order]
train, test = sentences[:4000], sentences[4000:]

freq = {}
for s, _ in train:
    for w in s:
        freq[w] = freq.get(w, 0) + 1
vocab = {w: i + 1 for i, w in enumerate(sorted(freq, key=lambda w: (-freq[w], w))[:1200])}

co = torch.zeros(len(vocab) + 1, len(vocab) + 1)
for s, _ in train:
    ids = sorted({vocab[w] for w in s if w in vocab})
    t = torch.tensor(ids, dtype=torch.long)
    co[t[:, None], t] += 1
co.fill_diagonal_(0)
u, sing, _ = torch.svd_lowrank(torch.log1p(co), q=40)
embedding = F.normalize(u * sing.sqrt(), dim=1)
embedding[0] = 0                      # padding row
embedding.requires_grad_(False)


def pad(rows, length=30):
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    for i, (s, _) in enumerate(rows):
        known = [vocab[w] for w in s if w in vocab][:length]
        ids[i, :len(known)] = torch.tensor(known, dtype=torch.long)
    return ids, torch.tensor([l for _, l in rows], dtype=torch.float32)


xtr, ytr = pad(train)
xte, yte = pad(test)
head = [torch.randn(80, 64) * 0.15, torch.zeros(64), torch.randn(64) * 0.1, torch.zeros(())]
head = [h.requires_grad_() for h in head]


def logits(ids):
    vec = embedding[ids]
    mask = (ids > 0).float().unsqueeze(-1)
    mean = vec.sum(1) / mask.sum(1).clamp(min=1)
    peak = vec.masked_fill(mask == 0, -1.0).max(1).values
    h = torch.relu(torch.cat([mean, peak], 1) @ head[0] + head[1])
    return h @ head[2] + head[3]


opt = torch.optim.Adam(head, lr=4e-3)
for epoch in range(10):
    total = 0.0
    for rows in torch.randperm(len(xtr)).split(100):
        loss = F.binary_cross_entropy_with_logits(logits(xtr[rows]), ytr[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 40
    with torch.no_grad():
        acc = ((logits(xte) > 0).float() == yte).float().mean().item()
    if epoch % 3 == 0:
        print(f'epoch {epoch} train loss {total:.3f} test accuracy {acc:.3f}')
