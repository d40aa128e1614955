"""From "PyTorch Debugging, Lab & Modern Performance", the FashionMNIST lab (fragment 0.4.16), with the indentation as printed.

Repaired: torchvision's dataset replaced by one that reads the idx files (TRUESTEP_DATA; random images without them), with the same
normalisation; fewer images. Not repaired: the lines that build and train the model stand behind `return`, so nothing is
trained and the program ends in silence. Expected: both loops over a loader end at their first batch (to be seen in
the text only: they never run).
"""
import gzip
import os
import tempfile
from pathlib import Path

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class FashionMNIST(Dataset):
    """The idx files of FashionMNIST, or random images where they are missing; a transformed tensor per item."""

    def __init__(self, train, limit):
        default = Path(__file__).resolve().parents[4] / "shared" / "data"
        folder = Path(os.environ.get("TRUESTEP_DATA", default)) / "fashion-mnist"
        prefix = "train" if train else "t10k"
        if (folder / f"{prefix}-images-idx3-ubyte.gz").exists():
            with gzip.open(folder / f"{prefix}-images-idx3-ubyte.gz") as file:
                pixels = file.read(16 + 784 * limit)[16:]
            with gzip.open(folder / f"{prefix}-labels-idx1-ubyte.gz") as file:
                labels = file.read(8 + limit)[8:]
            self.images = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).view(-1, 1, 28, 28)
            self.labels = list(labels)
        else:
            self.images = torch.randint(0, 256, (limit, 1, 28, 28), dtype=torch.uint8)
            self.labels = torch.randint(0, 10, (limit,)).tolist()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index].float().div(255)
        return image.sub(0.2860).div(0.3530), self.labels[index]


# -- Hyperparameters ------------------------------------------
BATCH_SIZE = 64
LEARNING_RATE = 1e-3
NUM_EPOCHS = 10
HIDDEN_DIM = 256

# -- Device ---------------------------------------------------
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(f"Training on: {device}")

# -- Data -----------------------------------------------------
train_data = FashionMNIST(train=True, limit=1024)
test_data = FashionMNIST(train=False, limit=256)

train_loader = DataLoader(train_data, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_data, batch_size=BATCH_SIZE, shuffle=False)


# -- Model ----------------------------------------------------
class FashionClassifier(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(),  # (B,1,28,28) -> (B,784)
            nn.Linear(784, hidden_dim),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(hidden_dim, hidden_dim),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(hidden_dim, 10),
        )

    def forward(self, x):
        return self.net(x)

        model = FashionClassifier(HIDDEN_DIM).to(device)
        print(model)
        print(f"Parameters: {sum(p.numel() for p in model.parameters()):,}")

        # -- Loss and Optimizer ---------------------------------------
        criterion = nn.CrossEntropyLoss()
        optimizer = optim.Adam(model.parameters(), lr=LEARNING_RATE)

        # -- Training -------------------------------------------------
    def train_one_epoch(model, loader, criterion, optimizer, device):
        model.train()
        total_loss, correct, total = 0.0, 0, 0

        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)

            optimizer.zero_grad()
            outputs = model(images)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()

            total_loss += loss.item() * labels.size(0)
            correct += (outputs.argmax(1) == labels).sum().item()
            total += labels.size(0)

            return total_loss / total, correct / total  # silent: never called

            # -- Evaluation -----------------------------------------------
def evaluate(model, loader, criterion, device):
    model.eval()
    total_loss, correct, total = 0.0, 0, 0

    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            outputs = model(images)
            loss = criterion(outputs, labels)

            total_loss += loss.item() * labels.size(0)
            correct += (outputs.argmax(1) == labels).sum().item()
            total += labels.size(0)

            return total_loss / total, correct / total  # silent: never called

            # -- Run ------------------------------------------------------
            for epoch in range(NUM_EPOCHS):
                train_loss, train_acc = train_one_epoch(model, train_loader, criterion, optimizer, device)
                test_loss, test_acc = evaluate(model, test_loader, criterion, device)

                print(f"Epoch {epoch+1:2d}/{NUM_EPOCHS} "
                    f"Train Loss: {train_loss:.4f} Acc: {train_acc:.4f} "
                    f"Test Loss: {test_loss:.4f} Acc: {test_acc:.4f}")

                # -- Save -----------------------------------------------------
                torch.save({
                    "model_state_dict": model.state_dict(),
                    "optimizer_state_dict": optimizer.state_dict(),
                    "test_acc": test_acc,
                    }, "fashion_classifier_checkpoint.pth")
                print(f"\nModel saved. Final test accuracy: {test_acc:.4f}")
