"""From "PyTorch Training", section The Training Loop: five lines on three samples.

Repaired: lost indentation. Expected: nothing.
"""
import torch
import torch.nn as nn

torch.set_num_threads(1)
# Our toy data
reviews = torch.tensor([[0.8, 0.1, 0.9, 0.2], [0.1, 0.9, 0.2, 0.8], [0.5, 0.5, 0.5, 0.5]])
labels = torch.tensor([1, 0, 1])
# A single linear layer: 4 features -> 2 classes
model = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(5):
    optimizer.zero_grad()              # 1. clear old gradients
    outputs = model(reviews)           # 2. forward pass
    loss = criterion(outputs, labels)  # 3. compute scalar loss
    loss.backward()                    # 4. compute gradients
    optimizer.step()                   # 5. update parameters
    print(f"Epoch {epoch}: loss={loss.item():.4f}")
