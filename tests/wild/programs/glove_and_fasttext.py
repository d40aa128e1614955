"""GloVe by weighted least squares on co-occurrences, then a fastText-like classifier that starts from its vectors."""
import torch, random
from collections import Counter

random.seed(1); torch.manual_seed(1)
TOPICS = {0: "cat dog bird fish paw tail".split(), 1: "car bus train road wheel fuel".split(), 2: "sum root prime graph proof set".split()}
NOISE = "the a of and to in".split()
docs, labels = [], []
for _ in range(300):
    t = random.randrange(3)
    docs.append([random.choice(TOPICS[t] if random.random() < .6 else NOISE) for _ in range(12)])
    labels.append(t)
vocab = sorted({w for d in docs for w in d}); ix = {w: i for i, w in enumerate(vocab)}
co = Counter()
for d in docs:
    for i, w in enumerate(d):
        for j in range(max(0, i - 4), i):
            co[ix[w], ix[d[j]]] += 1 / (i - j); co[ix[d[j]], ix[w]] += 1 / (i - j)
pairs = torch.tensor(list(co)); x = torch.tensor(list(co.values()), dtype=torch.float)
weight, logx = (x / 100).clamp(max=1) ** .75, x.log()

D = 16
W, C = torch.nn.Embedding(len(vocab), D), torch.nn.Embedding(len(vocab), D)
bw, bc = torch.nn.Embedding(len(vocab), 1), torch.nn.Embedding(len(vocab), 1)
for e in (W, C): torch.nn.init.uniform_(e.weight, -.5 / D, .5 / D)
for e in (bw, bc): torch.nn.init.zeros_(e.weight)
opt = torch.optim.Adagrad([p for e in (W, C, bw, bc) for p in e.parameters()], lr=.1)
for epoch in range(15):
    perm = torch.randperm(len(pairs)); s = 0.
    for part in perm.split(128):
        i, j = pairs[part].unbind(1)
        diff = (W(i) * C(j)).sum(1) + bw(i).squeeze(1) + bc(j).squeeze(1) - logx[part]
        loss = (weight[part] * diff ** 2).mean()
        opt.zero_grad(); loss.backward(); opt.step(); s += loss.item() * len(part)
    if epoch % 5 == 0: print("glove", epoch, round(s / len(pairs), 4))
vectors = (W.weight + C.weight).detach()
near = torch.nn.functional.cosine_similarity(vectors[ix["cat"]][None], vectors).topk(4).indices.tolist()
print("nearest to cat:", [vocab[k] for k in near])

bag = torch.nn.EmbeddingBag.from_pretrained(vectors.clone(), freeze=False, mode="mean")
out = torch.nn.Linear(D, 3)
opt = torch.optim.SGD([*bag.parameters(), *out.parameters()], lr=.5)
sched = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=5 * 8, power=1.0)
ids = torch.tensor([[ix[w] for w in d] for d in docs]); y = torch.tensor(labels)
tr, te = slice(0, 240), slice(240, 300)
for epoch in range(5):
    for b in torch.randperm(240).split(30):
        loss = torch.nn.functional.cross_entropy(out(bag(ids[tr][b])), y[tr][b])
        opt.zero_grad(); loss.backward(); opt.step(); sched.step()
    print("fasttext", epoch, round((out(bag(ids[te])).argmax(1) == y[te]).float().mean().item(), 3))
