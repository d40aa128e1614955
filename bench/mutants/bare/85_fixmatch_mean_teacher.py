"""Semi-supervised: 50 labels, pseudo-labels from an averaged teacher on weakly noised rows."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(3)
d = load_digits()
X, Y = torch.tensor(d.data, dtype=torch.float32) / 16, torch.tensor(d.target)
perm = torch.randperm(len(X))
labelled, unlabelled, test = perm[:50], perm[50:1300], perm[1300:]      # labels of `unlabelled` are never read

student = {'w1': torch.randn(64, 96) * 0.17, 'b1': torch.zeros(96), 'w2': torch.randn(96, 10) * 0.1, 'b2': torch.zeros(10)}
teacher = {k: v.clone() for k, v in student.items()}
for v in student.values():
    v.requires_grad_()


def net(p, x):
    return F.relu(x @ p['w1'] + p['b1']) @ p['w2'] + p['b2']


def weak(x):
    return x + 0.03 * torch.randn_like(x)


def strong(x):
    return (x + 0.15 * torch.randn_like(x)) * (torch.rand_like(x) > 0.2)


@torch.no_grad()
def accuracy(p):
    return (net(p, X[test]).argmax(1) == Y[test]).float().mean().item()


opt = torch.optim.Adam(student.values(), lr=2e-3)
for step in range(601):
    lab = labelled[torch.randint(50, (32,))]
    unl = unlabelled[torch.randint(len(unlabelled), (128,))]
    with torch.no_grad():
        conf, pseudo = net(teacher, weak(X[unl])).softmax(1).max(1)
        mask = (conf > 0.9).float()
    supervised = F.cross_entropy(net(student, weak(X[lab])), Y[lab])
    consistency = (F.cross_entropy(net(student, strong(X[unl])), pseudo, reduction='none') * mask).mean()
    loss = supervised + consistency
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for k in teacher:
            teacher[k].mul_(0.98).add_(student[k], alpha=0.02)
    if step % 150 == 0:
        print(f'step {step} supervised {supervised.item():.3f} kept {mask.mean().item():.2f} student {accuracy(student):.3f} teacher {accuracy(teacher):.3f}')
