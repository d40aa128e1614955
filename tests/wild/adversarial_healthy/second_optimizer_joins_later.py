"""The embedding has a second optimizer, built after twenty warm-up steps."""
import torch
from torch import nn

torch.manual_seed(0)


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(50, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, u):
        return self.mlp(self.users(u)).squeeze(-1)


model = Recommender()
opt = torch.optim.Adam(model.mlp.parameters(), lr=1e-3)
emb_opt = None
for step in range(60):
    if step == 20:
        emb_opt = torch.optim.SGD(model.users.parameters(), lr=0.1)
    users = torch.randint(0, 50, (32,))
    loss = nn.functional.mse_loss(model(users), (users % 5).float())
    model.zero_grad()
    loss.backward()
    opt.step()
    if emb_opt is not None:
        emb_opt.step()
print(loss.item())
