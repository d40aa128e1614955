"""Healthy: mixup or CutMix by a coin per batch: the loss is mixed from two cross entropies, labels smoothed, lr by a cosine per epoch."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits


def rand_bbox(size, lam):
    W, H = size[2], size[3]
    cut = np.sqrt(1.0 - lam)
    cut_w, cut_h = int(W * cut), int(H * cut)
    cx, cy = np.random.randint(W), np.random.randint(H)
    return np.clip([cx - cut_w // 2, cx + cut_w // 2], 0, W), np.clip([cy - cut_h // 2, cy + cut_h // 2], 0, H)


def mixup_criterion(criterion, pred, y_a, y_b, lam):
    return lam * criterion(pred, y_a) + (1 - lam) * criterion(pred, y_b)


class SmallConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12)
        self.conv2, self.bn2 = nn.Conv2d(12, 24, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(24)
        self.shortcut = nn.Conv2d(12, 24, 1, stride=2, bias=False)
        self.fc = nn.Linear(24, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)) + self.shortcut(x))
        return self.fc(x.mean((2, 3)))


def main():
    torch.manual_seed(1)
    np.random.seed(1)
    torch.set_num_threads(1)
    digits = load_digits()
    x, y = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8 - 1, torch.tensor(digits.target)
    net, epochs = SmallConv(), 8
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for epoch in range(epochs):
        net.train()
        train_loss, correct, total = 0.0, 0.0, 0
        for index in torch.randperm(1300).split(100):
            inputs, targets = x[index], y[index]
            lam, perm = np.random.beta(1.0, 1.0), torch.randperm(len(index))
            if np.random.rand() < 0.5:
                inputs = lam * inputs + (1 - lam) * inputs[perm]
            else:
                (x1, x2), (y1, y2) = rand_bbox(inputs.size(), lam)
                inputs[:, :, x1:x2, y1:y2] = inputs[perm, :, x1:x2, y1:y2]
                lam = 1 - (x2 - x1) * (y2 - y1) / 64
            outputs = net(inputs)
            loss = mixup_criterion(criterion, outputs, targets, targets[perm], lam)
            train_loss += loss.item()
            predicted = outputs.data.max(1)[1]
            correct += (lam * predicted.eq(targets).sum().item() + (1 - lam) * predicted.eq(targets[perm]).sum().item())
            total += targets.size(0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        net.eval()
        with torch.inference_mode():
            accuracy = (net(x[1300:]).argmax(1) == y[1300:]).float().mean().item()
        print("epoch %d | loss %.3f | mixed acc %.3f | test acc %.3f" % (epoch, train_loss / 13, correct / total, accuracy))


main()
