# says: `y` holds the label 3, but the model's 3 classes are 0 to 2
# says: labels: 1 to 3 in this batch
# says: count the labels from 0: `y - 1`
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
criterion = nn.CrossEntropyLoss()
data = [(torch.randn(3, 4), torch.tensor([1, 2, 3])) for _ in range(3)]
for x, y in data:  # related
    out = model(x)  # related
    loss = criterion(out, y)  # died: label-outside-of-classes
    loss.backward()
