"""Train a small classifier, then optimise an input image to excite one class (the weights stay fixed)."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(0)
data = load_digits()
xtr, xte, ytr, yte = train_test_split(data.images, data.target, test_size=0.25, random_state=0, stratify=data.target)
xtr, xte = (torch.tensor(a, dtype=torch.float32).unsqueeze(1) / 16 for a in (xtr, xte))
ytr, yte = torch.tensor(ytr), torch.tensor(yte)

k1 = (torch.randn(8, 1, 3, 3) * 0.3).requires_grad_()
k2 = (torch.randn(16, 8, 3, 3) * 0.12).requires_grad_()
w = (torch.randn(16 * 4, 10) * 0.1).requires_grad_()
b = torch.zeros(10, requires_grad=True)


def features(x):
    x = F.max_pool2d(F.relu(F.conv2d(x, k1, padding=1)), 2)
    return F.max_pool2d(F.relu(F.conv2d(x, k2, padding=1)), 2)


def classify(x):
    return features(x).flatten(1) @ w + b


opt = torch.optim.Adam([k1, k2, w, b], lr=5e-3)
for epoch in range(5):
    for idx in torch.randperm(len(xtr)).split(64):
        loss = F.cross_entropy(classify(xtr[idx]), ytr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
with torch.no_grad():
    print('test accuracy', round((classify(xte).argmax(1) == yte).float().mean().item(), 3))

for t in (k1, k2, w, b):
    t.requires_grad_(False)

image = torch.full((1, 1, 8, 8), 0.5) + 0.01 * torch.randn(1, 1, 8, 8)
image.requires_grad_(True)
dream = torch.optim.Adam([image], lr=0.05)
target = torch.tensor([3])
for step in range(60):
    smooth = (image[..., 1:] - image[..., :-1]).abs().mean() + (image[..., 1:, :] - image[..., :-1, :]).abs().mean()
    loss = -classify(image)[0, target].sum() + 2.0 * smooth
    dream.zero_grad()
    loss.backward()
    dream.step()
    with torch.no_grad():
        image.clamp_(0, 1)
with torch.no_grad():
    print('class of the dream', classify(image).argmax().item(), 'p', round(classify(image).softmax(1)[0, 3].item(), 3))
for row in image.detach()[0, 0]:
    print(''.join(' .:*#'[min(4, int(v * 5))] for v in row.tolist()))
