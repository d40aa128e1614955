# style transfer with a fixed random filter bank: only the picture is optimised, a training set is not needed
import torch
import torch.nn.functional as F
from sklearn.datasets import load_sample_image

torch.manual_seed(0)


def picture(name):
    img = torch.tensor(load_sample_image(name).copy()).permute(2, 0, 1).float()[None] / 255
    return F.interpolate(img, size=(48, 64), mode='bilinear', antialias=True)


content, style = picture('china.jpg'), picture('flower.jpg')
bank = [torch.randn(16, 3, 5, 5) / 75 ** 0.5, torch.randn(24, 16, 3, 3) / 144 ** 0.5]


def activations(x):
    acts = []
    for i, k in enumerate(bank):
        x = F.relu(F.conv2d(x, k, stride=1 + i))
        acts.append(x)
    return acts


def gram(a):
    f = a.flatten(2)[0]
    return f @ f.T / f.numel()


with torch.no_grad():
    content_goal = activations(content)[1]
    style_goal = [gram(a) for a in activations(style)]

x = content.clone().requires_grad_(True)
opt = torch.optim.LBFGS([x], lr=1.0, max_iter=5, line_search_fn='strong_wolfe')
log = []


def closure():
    opt.zero_grad()
    acts = activations(x)
    c = F.mse_loss(acts[1], content_goal)
    s = sum(F.mse_loss(gram(a), g) for a, g in zip(acts, style_goal))
    loss = c + 300 * s
    loss.backward()
    log.append((c.item(), s.item()))
    return loss


for it in range(12):
    opt.step(closure)
    print(it, f'content {log[-1][0]:.5f} style {log[-1][1]:.7f}')
with torch.no_grad():
    result = x.clamp(0, 1)
print('mean colour of the result', [round(v, 3) for v in result.mean((0, 2, 3)).tolist()])
