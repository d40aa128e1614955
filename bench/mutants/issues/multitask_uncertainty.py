"""Two regression tasks, one shared trunk, homoscedastic uncertainty weighting."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def simulate(n, generator):
    x = torch.randn(n, 10, generator=generator)
    price = 40 * torch.tanh(x[:, 0] + x[:, 1]) + 60 * torch.randn(n, generator=generator)
    score = torch.sin(1.5 * x[:, 2]) * x[:, 3] + 0.1 * torch.randn(n, generator=generator)
    return x, price.unsqueeze(1), score.unsqueeze(1)


class TwoTaskNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, hidden), nn.ReLU(),
                                   nn.Linear(hidden, hidden), nn.ReLU())
        self.price_head = nn.Linear(hidden, 1)
        self.score_head = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.price_head(h), self.score_head(h)


class UncertaintyWeightedLoss(nn.Module):
    def __init__(self, n_tasks):
        super().__init__()
        self.log_vars = nn.Parameter(torch.zeros(n_tasks))

    def forward(self, losses):
        total = 0.0
        for log_var, loss in zip(self.log_vars, losses):
            total = total + 0.5 * torch.exp(-log_var) * loss + 0.5 * log_var
        return total


class MultiTaskTrainer:
    def __init__(self, model, lr=3e-3):
        self.model = model
        self.mse = nn.MSELoss()
        self.combine = UncertaintyWeightedLoss(2)
        self.optimizer = torch.optim.Adam([
            {"params": self.model.parameters(), "lr": lr},
            {"params": self.combine.parameters(), "lr": 10 * lr},
        ])

    def task_losses(self, x, price, score):
        price_hat, score_hat = self.model(x)
        return self.mse(price_hat, price), self.mse(score_hat, score)

    def train_epoch(self, loader):
        self.model.train()
        running = 0.0
        for batch in loader:
            self.optimizer.zero_grad()
            loss = self.combine(self.task_losses(*batch))
            loss.backward()
            self.optimizer.step()
            running += loss.item()
        return running / len(loader)

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        sums, n = torch.zeros(2), 0
        for x, price, score in loader:
            sums += torch.stack(self.task_losses(x, price, score)) * len(x)
            n += len(x)
        return (sums / n).sqrt().tolist()


def main():
    torch.manual_seed(4)
    generator = torch.Generator().manual_seed(4)
    dataset = TensorDataset(*simulate(3000, generator))
    train_set, val_set = random_split(dataset, [2400, 600], generator=generator)
    train_loader = DataLoader(train_set, batch_size=60, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=300)

    trainer = MultiTaskTrainer(TwoTaskNet())
    for epoch in range(1, 26):
        loss = trainer.train_epoch(train_loader)
        if epoch % 5 == 0:
            price_rmse, score_rmse = trainer.validate(val_loader)
            print(f"epoch {epoch:2d}  loss {loss:9.3f}  "
                  f"val price RMSE {price_rmse:.3f}  val score RMSE {score_rmse:.4f}")
    print("task log variances", [round(v, 3) for v in trainer.combine.log_vars.tolist()])


if __name__ == "__main__":
    main()
