"""Healthy: SimCLR: two augmented views through one network per loss, NT-Xent over the batch."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class ContrastiveDataset(Dataset):
    def __init__(self, x, n_views=2):
        self.x = x
        self.n_views = n_views

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return [self.augment(self.x[i]) for _ in range(self.n_views)]

    @staticmethod
    def augment(x):
        shift = int(torch.randint(-2, 3, (1,)))
        return torch.roll(x, shift, -1) * (0.8 + 0.4 * torch.rand(1)) + 0.1 * torch.randn_like(x)


def info_nce_loss(features, batch_size, temperature=0.3, n_views=2):
    labels = torch.cat([torch.arange(batch_size) for _ in range(n_views)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = F.normalize(features, dim=1)
    similarity_matrix = torch.matmul(features, features.T)
    # discard the main diagonal from both: labels and similarities matrix
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
    positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1) / temperature
    return logits, torch.zeros(logits.shape[0], dtype=torch.long)


def waves(n):
    t = torch.arange(32.0)
    freq = 0.2 + 1.2 * torch.rand(n, 1)
    return (torch.sin(freq * t + 6.28 * torch.rand(n, 1)) + 0.5 * torch.sin(2 * freq * t)).unsqueeze(1)


torch.manual_seed(0)
torch.set_num_threads(1)
dataset = ContrastiveDataset(waves(512))
train_loader = DataLoader(dataset, batch_size=64, shuffle=True, drop_last=True)

backbone = nn.Sequential(nn.Conv1d(1, 16, 5, stride=2), nn.ReLU(), nn.Conv1d(16, 32, 5, stride=2), nn.ReLU(),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten())
projector = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))
model = nn.Sequential(backbone, projector)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(6):
    top1 = n = 0
    for view1, view2 in train_loader:
        features = torch.cat([model(view1), model(view2)], dim=0)
        logits, labels = info_nce_loss(features, len(view1))
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        top1 += (logits.argmax(1) == 0).sum().item()
        n += len(labels)
    print(f"Epoch: {epoch}\tLoss: {loss.item():.3f}\tTop1 accuracy: {100 * top1 / n:.1f}")
