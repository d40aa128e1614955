"""Healthy: model.zero_grad() instead of optimizer.zero_grad(), two optimizers over disjoint parts of one model."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(1)
torch.set_num_threads(1)

CONTEXT_SIZE = 2
EMBEDDING_DIM = 16
text = """when forty winters shall besiege thy brow and dig deep trenches in thy beauty s field
thy youth s proud livery so gazed on now will be a totter d weed of small worth held
then being asked where all thy beauty lies where all the treasure of thy lusty days
to say within thine own deep sunken eyes were an all eating shame and thriftless praise""".split()

ngrams = [([text[i - 2], text[i - 1]], text[i]) for i in range(CONTEXT_SIZE, len(text))]
vocab = sorted(set(text))
word_to_ix = {word: i for i, word in enumerate(vocab)}


class NGramLanguageModeler(nn.Module):
    def __init__(self, vocab_size, embedding_dim, context_size):
        super().__init__()
        self.embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.linear1 = nn.Linear(context_size * embedding_dim, 64)
        self.linear2 = nn.Linear(64, vocab_size)

    def forward(self, inputs):
        embeds = self.embeddings(inputs).flatten(1)
        out = F.relu(self.linear1(embeds))
        return F.log_softmax(self.linear2(out), dim=1)


model = NGramLanguageModeler(len(vocab), EMBEDDING_DIM, CONTEXT_SIZE)
loss_function = nn.NLLLoss()
emb_optimizer = optim.Adagrad(model.embeddings.parameters(), lr=0.1)
optimizer = optim.SGD([*model.linear1.parameters(), *model.linear2.parameters()], lr=0.2)

contexts = torch.tensor([[word_to_ix[w] for w in context] for context, _ in ngrams])
targets = torch.tensor([word_to_ix[target] for _, target in ngrams])

losses = []
for epoch in range(15):
    total_loss = 0.0
    for idx in torch.randperm(len(targets)).split(8):
        model.zero_grad()
        log_probs = model(contexts[idx])
        loss = loss_function(log_probs, targets[idx])
        loss.backward()
        optimizer.step()
        emb_optimizer.step()
        total_loss += loss.item() * len(idx)
    losses.append(total_loss / len(targets))

print([round(l, 3) for l in losses])
print("embedding norm of 'beauty':", round(model.embeddings.weight[word_to_ix["beauty"]].norm().item(), 4))
