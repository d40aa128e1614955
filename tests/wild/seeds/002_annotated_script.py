"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
section The complete annotated script; the one-line fragments of the sections before are its lines.

Repaired: lost indentation; `make_labels`, `device` and the validation data; 2000 points -> 640, 100 epochs -> 5 (the schedule
with them). Expected: the workers start again for every epoch of some milliseconds.
"""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


def make_labels(X):
    """Three classes, by the angle."""
    angle = torch.atan2(X[:, 1], X[:, 0]) + X.norm(dim=1)
    return ((angle + 4) * 0.9).long() % 3


device = torch.device('cpu')
# -- data --
X_train = torch.randn(640, 2)  # [1]
y_train = make_labels(X_train)  # [2]
X_val = torch.randn(160, 2)
y_val = make_labels(X_val)

dataset = TensorDataset(X_train, y_train)  # [3]
loader = DataLoader(dataset, batch_size=64, shuffle=True,  # silent: workers-respawned reports waits of seconds
                    num_workers=2, pin_memory=True)


# -- model --
class MLP(nn.Module):  # [5]
    def __init__(self, in_features, hidden, out_features):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(in_features, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, out_features),
        )

    def forward(self, x):
        return self.net(x)


model = MLP(in_features=2, hidden=128, out_features=3).to(device)  # [6]

# -- loss, optimiser, scheduler --
criterion = nn.CrossEntropyLoss()  # [7]
optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)  # [8]
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(  # [9]
    optimiser, T_max=5
)

# -- training loop --
for epoch in range(5):

    model.train()  # [10]

    for X_batch, y_batch in loader:

        optimiser.zero_grad()  # [11]

        logits = model(X_batch)  # [12]

        loss = criterion(logits, y_batch)  # [13]

        loss.backward()  # [14]

        torch.nn.utils.clip_grad_norm_(  # [15]
            model.parameters(), max_norm=1.0
        )

        optimiser.step()  # [16]

    scheduler.step()  # [17]

    # -- validation --
    model.eval()  # [18]
    with torch.no_grad():  # [19]
        val_logits = model(X_val)
        val_loss = criterion(val_logits, y_val)
        val_acc = (val_logits.argmax(1) == y_val).float().mean()
print(f"val_loss={val_loss:.4f} val_acc={val_acc:.3f}")
