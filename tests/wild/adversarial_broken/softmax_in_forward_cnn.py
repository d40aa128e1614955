"""A CNN that ends in softmax, trained with CrossEntropyLoss."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.fc = nn.Linear(6 * 36, 4)

    def forward(self, x):
        x = torch.relu(self.conv(x)).flatten(1)
        return torch.softmax(self.fc(x), dim=1)


model, criterion = CNN(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(96, 1, 8, 8), torch.randint(0, 4, (96,))), batch_size=16, shuffle=True)
for epoch in range(3):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)  # error: softmax-before-cross-entropy
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
