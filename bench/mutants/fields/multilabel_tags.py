"""Multi-label tagging with positive weights for the rare tags."""

import torch
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger:
    """Keeps the model, the loss and the optimizer."""

    def __init__(self, n_in, n_tags, pos_weight, lr=3e-3):
        self.model = nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, n_tags))
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=1e-3)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for x, y in loader:
                self.optimizer.zero_grad(set_to_none=True)
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item() * x.size(0)
            if (epoch + 1) % 5 == 0:
                print(f"epoch {epoch + 1:3d} | loss {total / len(loader.dataset):.4f}")

    @torch.no_grad()
    def predict(self, x):
        self.model.eval()
        return (self.model(x).sigmoid() > 0.5).int()


if __name__ == "__main__":
    torch.manual_seed(9)
    x, y = make_multilabel_classification(
        n_samples=1500, n_features=30, n_classes=8, n_labels=2, length=40, random_state=9
    )
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=9)
    mean, std = x_train.mean(0), x_train.std(0) + 1e-6
    x_train = torch.tensor((x_train - mean) / std).float()
    x_test = torch.tensor((x_test - mean) / std).float()
    y_train = torch.tensor(y_train).float()

    positives = y_train.sum(dim=0)
    negatives = len(y_train) - positives
    pos_weight = negatives / positives.clamp(min=1)
    print("positive weights", [round(v, 2) for v in pos_weight.tolist()])

    tagger = Tagger(30, 8, pos_weight)
    tagger.fit(DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True), epochs=15)
    predicted = tagger.predict(x_test).numpy()
    print(f"macro F1 {f1_score(y_test, predicted, average='macro', zero_division=0):.4f}")
    print(f"tags per sample {predicted.sum(1).mean():.2f} (true {y_test.sum(1).mean():.2f})")
