"""Semi- and unsupervised recipes: Deep SVDD without biases, co-teaching, self-training rounds with a new student, MMD adaptation, OHEM."""
import copy
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
truth = torch.randn(6, 3)
draw = lambda n, shift=0.0: (lambda x: (x, ((x - shift) @ truth).argmax(1)))(torch.randn(n, 6) + shift)
mlp = lambda out: nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, out))
acc = lambda m, x, y: round((m(x).argmax(1) == y).float().mean().item(), 3)

# Deep SVDD: the centre is fixed after one pass of the fresh network
svdd = nn.Sequential(nn.Linear(6, 16, bias=False), nn.LeakyReLU(), nn.Linear(16, 4, bias=False))
normal = 0.3 * torch.randn(256, 6) + 1
with torch.no_grad():
    c = svdd(normal).mean(0)
    c[(c.abs() < 0.1)] = 0.1
opt = torch.optim.Adam(svdd.parameters(), lr=1e-3, weight_decay=1e-4)
for step in range(60):
    loss = (svdd(normal[torch.randint(0, 256, (64,))]) - c).square().sum(1).mean()
    opt.zero_grad(); loss.backward(); opt.step()
with torch.no_grad():
    inside, outside = ((svdd(t) - c).square().sum(1).mean().item() for t in (normal, torch.randn(256, 6) * 2))
print("svdd", round(loss.item(), 4), outside > 3 * inside)

# co-teaching on noisy labels: each net picks small-loss samples for the other
X, Y = draw(400)
noisy = torch.where(torch.rand(400) < 0.3, torch.randint(0, 3, (400,)), Y)
a, b = mlp(3), mlp(3)
oa, ob = torch.optim.Adam(a.parameters(), 5e-3), torch.optim.Adam(b.parameters(), 5e-3)
for epoch in range(10):
    keep = 1 - 0.3 * min(1, epoch / 5)
    for i in torch.randperm(400).split(50):
        la, lb = (F.cross_entropy(m(X[i]), noisy[i], reduction="none") for m in (a, b))
        n = int(keep * len(i))
        ia, ib = la.detach().argsort()[:n], lb.detach().argsort()[:n]
        oa.zero_grad(); la[ib].mean().backward(); oa.step()
        ob.zero_grad(); lb[ia].mean().backward(); ob.step()
with torch.no_grad():
    print("co-teaching", acc(a, X, Y), acc(b, X, Y))

# self-training: every round a new student learns from the teacher's confident labels
lx, ly = draw(40)
pool = torch.randn(500, 6)
teacher = None
for round_ in range(3):
    student = mlp(3)
    opt = torch.optim.SGD(student.parameters(), 0.1, momentum=0.9)
    if teacher is None:
        sx, sy = lx, ly
    else:
        with torch.no_grad():
            conf, label = teacher(pool).softmax(1).max(1)
        sx, sy = torch.cat([lx, pool[conf > 0.9]]), torch.cat([ly, label[conf > 0.9]])
    for _ in range(40):
        i = torch.randint(0, len(sx), (32,))
        each = F.cross_entropy(student(sx[i]), sy[i], reduction="none")
        loss = each.topk(24).values.mean()  # online hard example mining
        opt.zero_grad(); loss.backward(); opt.step()
    teacher = copy.deepcopy(student).eval().requires_grad_(False)
    print("self-training", round_, len(sx), acc(teacher, X, Y))

# MMD between source and target features
def mmd(p, q):
    z = torch.cat([p, q]); d = torch.cdist(z, z) ** 2
    k = sum(torch.exp(-d / s) for s in (1.0, 5.0, 25.0)); n = len(p)
    return k[:n, :n].mean() + k[n:, n:].mean() - 2 * k[:n, n:].mean()
body, head = nn.Sequential(nn.Linear(6, 16), nn.Tanh()), nn.Linear(16, 3)
opt = torch.optim.Adam([*body.parameters(), *head.parameters()], 1e-2)
for step in range(80):
    xs, ys = draw(64); xt, yt = draw(64, 0.8)
    fs, ft = body(xs), body(xt)
    loss = F.cross_entropy(head(fs), ys) + 2 * mmd(fs, ft)
    opt.zero_grad(); loss.backward(); opt.step()
with torch.no_grad():
    print("mmd", round(loss.item(), 3), acc(nn.Sequential(body, head), *draw(500, 0.8)))
