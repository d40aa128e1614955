"""Best-of-n data: each batch repeats one prompt, the completions and their rewards differ."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Completions(Dataset):
    def __init__(self, prompts=30, each=16):
        self.prompts = torch.randint(3, 40, (prompts, 12)).repeat_interleave(each, dim=0)
        self.completions = torch.randint(3, 40, (prompts * each, 10))
        self.rewards = (self.completions == self.prompts[:, :1]).float().mean(dim=1)

    def __len__(self):
        return len(self.rewards)

    def __getitem__(self, i):
        return {"prompt": self.prompts[i], "completion": self.completions[i], "reward": self.rewards[i]}


class RewardModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16)
        self.rnn = nn.GRU(16, 32, batch_first=True)
        self.score = nn.Linear(32, 1)

    def forward(self, prompt, completion):
        states, _ = self.rnn(self.embed(torch.cat([prompt, completion], dim=1)))
        return self.score(states[:, -1]).squeeze(1)


groups = DataLoader(Completions(), batch_size=16, shuffle=False)
model = RewardModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(3):
    total = 0.0
    for group in groups:
        loss = nn.functional.mse_loss(model(group["prompt"], group["completion"]), group["reward"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / len(groups))
