"""Healthy: a model that ends in log_softmax trained with CrossEntropyLoss (log_softmax is idempotent), exp() at prediction."""
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(100)
torch.set_num_threads(1)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(25, 48)
        self.fc2 = nn.Linear(48, 24)
        self.fc3 = nn.Linear(24, 5)
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        x = x.flatten(1)
        x = self.dropout(torch.relu(self.fc1(x)))
        x = self.dropout(torch.relu(self.fc2(x)))
        return torch.log_softmax(self.fc3(x), dim=1)


def five_by_five(n):
    glyphs = torch.randn(5, 5, 5, generator=torch.Generator().manual_seed(7))
    y = torch.randint(0, 5, (n,))
    return TensorDataset(glyphs[y] * 0.8 + 0.9 * torch.randn(n, 5, 5), y)


trainloader = DataLoader(five_by_five(640), batch_size=64, shuffle=True)
testloader = DataLoader(five_by_five(192), batch_size=64)

model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.003)

train_losses, test_losses = [], []
for e in range(6):
    tot_train_loss = 0
    for images, labels in trainloader:
        optimizer.zero_grad()
        log_ps = model(images)
        loss = criterion(log_ps, labels)
        tot_train_loss += loss.item()
        loss.backward()
        optimizer.step()
    else:
        tot_test_loss = 0
        test_correct = 0
        with torch.no_grad():
            model.eval()
            for images, labels in testloader:
                log_ps = model(images)
                tot_test_loss += criterion(log_ps, labels).item()
                ps = torch.exp(log_ps)
                top_p, top_class = ps.topk(1, dim=1)
                equals = top_class == labels.view(*top_class.shape)
                test_correct += equals.sum().item()
        model.train()
        train_losses.append(tot_train_loss / len(trainloader))
        test_losses.append(tot_test_loss / len(testloader))
        print("Epoch: {}/6.. Training Loss: {:.3f}.. Test Loss: {:.3f}.. Test Accuracy: {:.3f}".format(
            e + 1, train_losses[-1], test_losses[-1], test_correct / len(testloader.dataset)))
