# Row-by-row LSTM on the 8x8 digits: every image is a sequence of 8 rows with 8 pixels
import torch
import torch.nn as nn
from sklearn.datasets import load_digits

torch.manual_seed(1)

sequence_length = 8
input_size = 8
hidden_size = 48
num_classes = 10
batch_size = 50
num_epochs = 12
learning_rate = 0.005

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32) / 16.0
labels = torch.tensor(digits.target)
perm = torch.randperm(len(images))
images, labels = images[perm], labels[perm]
n_train = 1400
train_images, train_labels = images[:n_train], labels[:n_train]
test_images, test_labels = images[n_train:], labels[n_train:]


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, num_classes):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers=1, batch_first=True)
        self.fc = nn.Linear(hidden_size, num_classes)

    def forward(self, x):
        # x: (batch, seq, feature)
        out, _ = self.lstm(x)
        return self.fc(out[:, -1, :])


model = RNN(input_size, hidden_size, num_classes)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)


def test(batch):
    model.eval()
    correct, total = 0, 0
    with torch.no_grad():
        for i in range(0, len(test_images), batch):
            x = test_images[i:i + batch].reshape(-1, sequence_length, input_size)
            y = test_labels[i:i + batch]
            predicted = model(x).argmax(dim=1)
            total += y.size(0)
            correct += (predicted == y).sum().item()
    return correct / total


for epoch in range(num_epochs):
    model.train()
    order = torch.randperm(n_train)
    running_loss = 0.0
    for i in range(0, n_train, batch_size):
        idx = order[i:i + batch_size]
        x = train_images[idx].reshape(-1, sequence_length, input_size)
        outputs = model(x)
        loss = criterion(outputs, train_labels[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * len(idx)
    if (epoch + 1) % 3 == 0:
        print(f'Epoch [{epoch + 1}/{num_epochs}], Loss: {running_loss / n_train:.4f}, '
              f'Test accuracy: {100 * test(batch_size):.2f} %')

print(f'Test accuracy of the model on {len(test_images)} images: {100 * test(batch_size):.2f} %')
