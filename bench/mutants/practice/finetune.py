"""Two-stage fine-tuning. Pretrain a backbone on digits 0-5, save it, then learn the
digits 6-9 from few labels: first the head only, later everything with a lower rate."""
import math, os, tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

ACCUM, BATCH, WARMUP, HEAD_EPOCHS, FULL_EPOCHS = 2, 12, 20, 8, 16

def get_data():
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 16.0, dtype=torch.float32).view(-1, 1, 8, 8), torch.tensor(y)
    source = y < 6
    xs, ys, xt, yt = x[source], y[source], x[~source], y[~source] - 6
    perm = torch.from_numpy(np.random.default_rng(0).permutation(len(xt)))
    xt, yt = xt[perm], yt[perm]
    mean, std = xs.mean(), xs.std()
    xs, xt = (xs - mean) / std, (xt - mean) / std
    return (xs, ys), (xt[:100], yt[:100]), (xt[100:250], yt[100:250]), (xt[250:], yt[250:])

class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.bn2 = nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        return F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2).flatten(1)

class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(128, classes))
        self.frozen = False

    def freeze(self, flag):
        self.frozen = flag
        self.backbone.requires_grad_(not flag)

    def train(self, mode=True):
        super().train(mode)
        if self.frozen:
            self.backbone.eval()                # keep the BatchNorm statistics
        return self

    def forward(self, x):
        return self.head(self.backbone(x))

class EMA:
    def __init__(self, model, decay=0.95):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.state_dict().items():
            if v.is_floating_point():
                self.shadow[k].lerp_(v, 1 - self.decay)
            else:
                self.shadow[k].copy_(v)

def pretrain(path, data):
    net = Net(6)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(4):
        for idx in torch.randperm(len(data[0])).split(64):
            loss = F.cross_entropy(net(data[0][idx]), data[1][idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    torch.save(net.backbone.state_dict(), path)
    print("pretraining loss %.5f" % loss.item())

def warmup_cosine(opt, total):
    def factor(step):
        if step < WARMUP:
            return (step + 1) / WARMUP
        return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / max(1, total - WARMUP)))
    return torch.optim.lr_scheduler.LambdaLR(opt, factor)

def train_epoch(net, data, opt, sched, ema):
    net.train()
    total = 0.0
    batches = torch.randperm(len(data[0])).split(BATCH)
    opt.zero_grad()
    for i, idx in enumerate(batches):
        group = batches[i // ACCUM * ACCUM:i // ACCUM * ACCUM + ACCUM]
        loss = F.cross_entropy(net(data[0][idx]), data[1][idx])
        (loss * len(idx) / sum(len(b) for b in group)).backward()
        total += loss.item() * len(idx)
        if (i + 1) % ACCUM == 0 or i + 1 == len(batches):
            nn.utils.clip_grad_norm_(net.parameters(), 2.0)
            opt.step()
            sched.step()
            opt.zero_grad()
            ema.update(net)
    return total / len(data[0])

@torch.no_grad()
def accuracy(state, data):
    net = Net(4)
    net.load_state_dict(state)
    net.eval()
    out = net(data[0])
    return (out.argmax(1) == data[1]).float().mean().item(), F.cross_entropy(out, data[1]).item()

def full_optimizer(net):
    return torch.optim.AdamW([{"params": net.backbone.parameters(), "lr": 5e-4},
                              {"params": net.head.parameters(), "lr": 2e-3}], weight_decay=1e-2)

def main():
    torch.manual_seed(4)
    folder = tempfile.mkdtemp()
    source, train, val, test = get_data()
    pretrain(os.path.join(folder, "backbone.pt"), source)

    net = Net(4)
    net.backbone.load_state_dict(torch.load(os.path.join(folder, "backbone.pt")))
    steps = math.ceil(math.ceil(len(train[0]) / BATCH) / ACCUM)

    net.freeze(True)
    opt = torch.optim.AdamW(net.head.parameters(), lr=5e-3, weight_decay=1e-2)
    sched = warmup_cosine(opt, HEAD_EPOCHS * steps)
    ema = EMA(net)
    for epoch in range(HEAD_EPOCHS):
        loss = train_epoch(net, train, opt, sched, ema)
    print("head stage: loss %.5f" % loss, "val acc %.4f nll %.5f" % accuracy(ema.shadow, val))

    net.freeze(False)
    opt = full_optimizer(net)
    sched = warmup_cosine(opt, FULL_EPOCHS * steps)
    ckpt = os.path.join(folder, "last.pt")
    for epoch in range(FULL_EPOCHS // 2):
        loss = train_epoch(net, train, opt, sched, ema)
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(),
                    "ema": ema.shadow, "epoch": epoch}, ckpt)
    print("interrupted after epoch", epoch, "loss %.5f" % loss)

    # a new process would begin here
    saved = torch.load(ckpt)
    net = Net(4)
    net.load_state_dict(saved["net"])
    opt = full_optimizer(net)
    sched = warmup_cosine(opt, FULL_EPOCHS * steps)
    opt.load_state_dict(saved["opt"])
    sched.load_state_dict(saved["sched"])
    ema = EMA(net)
    ema.shadow = saved["ema"]
    for epoch in range(saved["epoch"] + 1, FULL_EPOCHS):
        loss = train_epoch(net, train, opt, sched, ema)
    print("full stage: epochs %d loss %.5f" % (epoch + 1, loss), "val acc %.4f nll %.5f" % accuracy(ema.shadow, val))
    print("test acc %.4f nll %.5f" % accuracy(ema.shadow, test))

if __name__ == "__main__":
    main()
