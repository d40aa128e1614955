"""Healthy: character RNN classifier in the names-tutorial style: one sequence at a time, hidden state reset, SGD by hand."""
import random

import torch
import torch.nn as nn

random.seed(3)
torch.manual_seed(3)
torch.set_num_threads(1)

all_letters = "abcdefghijklmnopqrstuvwxyz"
n_letters = len(all_letters)
all_categories = ["vowelish", "hissing", "humming"]
favourites = {"vowelish": "aeiouy", "hissing": "szxfcht", "humming": "mnlrwgb"}


def random_name(category):
    pool = [c for c in all_letters] + list(favourites[category]) * 8
    return "".join(random.choice(pool) for _ in range(random.randint(4, 9)))


def lineToTensor(line):
    tensor = torch.zeros(len(line), 1, n_letters)
    for li, letter in enumerate(line):
        tensor[li][0][all_letters.find(letter)] = 1
    return tensor


def randomTrainingExample():
    category = random.choice(all_categories)
    line = random_name(category)
    category_tensor = torch.tensor([all_categories.index(category)], dtype=torch.long)
    return category, line, category_tensor, lineToTensor(line)


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        combined = torch.cat((input, hidden), 1)
        hidden = torch.tanh(self.i2h(combined))
        output = self.softmax(self.h2o(hidden))
        return output, hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


rnn = RNN(n_letters, 32, len(all_categories))
criterion = nn.NLLLoss()
learning_rate = 0.02


def train(category_tensor, line_tensor):
    hidden = rnn.initHidden()
    rnn.zero_grad()
    for i in range(line_tensor.size()[0]):
        output, hidden = rnn(line_tensor[i], hidden)
    loss = criterion(output, category_tensor)
    loss.backward()
    # Add parameters' gradients to their values, multiplied by learning rate
    for p in rnn.parameters():
        p.data.add_(p.grad.data, alpha=-learning_rate)
    return output, loss.item()


def evaluate(line_tensor):
    hidden = rnn.initHidden()
    with torch.no_grad():
        for i in range(line_tensor.size()[0]):
            output, hidden = rnn(line_tensor[i], hidden)
    return output


current_loss = 0
all_losses = []
for it in range(1, 601):
    category, line, category_tensor, line_tensor = randomTrainingExample()
    output, loss = train(category_tensor, line_tensor)
    current_loss += loss
    if it % 100 == 0:
        all_losses.append(round(current_loss / 100, 4))
        current_loss = 0
print(all_losses)

hits = 0
for _ in range(100):
    category, line, category_tensor, line_tensor = randomTrainingExample()
    hits += evaluate(line_tensor).argmax(1).item() == category_tensor.item()
print("accuracy on new names", hits / 100)
