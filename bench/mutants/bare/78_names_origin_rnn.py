"""Which language is a name from? The tutorial's character RNN with plain tensors, one name at a time."""
import glob
import os
import random
import torch

random.seed(0)
torch.manual_seed(0)
letters = 'abcdefghijklmnopqrstuvwxyz '
names = {}
for path in sorted(glob.glob(os.path.join(os.environ['TRUESTEP_DATA'], 'names', 'by_language', '*.txt'))):
    lang = os.path.splitext(os.path.basename(path))[0]
    if lang in ('Japanese', 'Italian', 'Russian', 'Arabic'):
        with open(path, encoding='utf-8') as f:
            rows = sorted({''.join(c for c in line.strip().lower() if c in letters) for line in f})
        random.shuffle(rows)
        names[lang] = [r for r in rows if r]
langs = list(names)
test = [(n, i) for i, l in enumerate(langs) for n in names[l][:20]]

H = 64
i2h = (torch.randn(len(letters), H) * 0.3).requires_grad_()
h2h = (torch.randn(H, H) * 0.1).requires_grad_()
h2o = (torch.randn(H, len(langs)) * 0.1).requires_grad_()
bh = torch.zeros(H, requires_grad=True)
params = [i2h, h2h, h2o, bh]


def log_probs(name):
    h = torch.zeros(H)
    for ch in name:
        h = torch.tanh(i2h[letters.index(ch)] + h @ h2h + bh)
    return torch.log_softmax(h @ h2o, 0)


def test_accuracy():
    with torch.no_grad():
        return sum(log_probs(n).argmax().item() == i for n, i in test) / len(test)


def by_class():
    """A random language first, then one of its names: the classes are balanced."""
    i = random.randrange(len(langs))
    return random.choice(names[langs[i]][20:]), i


running = 0.0
print(f'untrained {test_accuracy():.3f}')
for step in range(1, 1801):
    name, i = by_class()
    loss = -log_probs(name)[i]
    loss.backward()
    torch.nn.utils.clip_grad_norm_(params, 1.0)
    with torch.no_grad():
        for p in params:
            p -= 0.05 * p.grad
            p.grad = None
    running += loss.item()
    if step % 600 == 0:
        print(f'step {step} mean loss {running / 600:.3f} test accuracy {test_accuracy():.3f}')
        running = 0.0
