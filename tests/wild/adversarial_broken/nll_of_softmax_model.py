"""A text classifier that ends in nn.Softmax, with NLLLoss; gradients accumulated over two batches."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class BagOfWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(200, 16)
        self.out = nn.Linear(16, 4)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, tokens):
        return self.softmax(self.out(self.embed(tokens)))


tokens = torch.randint(0, 200, (240, 9))
labels = (tokens.sum(1) % 4)
model = BagOfWords()
loss_function = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
model.train()
for epoch in range(4):
    optimizer.zero_grad()
    for number, rows in enumerate(torch.randperm(240).split(30)):
        loss = loss_function(model(tokens[rows]), labels[rows])  # error: logits-into-probability-loss
        (loss / 2).backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
