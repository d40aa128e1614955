# Semi-supervised node classification with a two-layer graph convolution network
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(37)
np.random.seed(37)

# --- a citation-like graph: four communities, weak node features -------------
n, n_class, n_feat = 300, 4, 24
label = np.arange(n) % n_class
p_edge = np.where(label[:, None] == label[None, :], 0.05, 0.008)
upper = np.triu(np.random.rand(n, n) < p_edge, k=1)
adjacency = (upper + upper.T).astype(np.float32) + np.eye(n, dtype=np.float32)
centers = np.random.randn(n_class, n_feat)
features = 0.4 * centers[label] + np.random.randn(n, n_feat)

perm = np.random.permutation(n)
idx_train, idx_val, idx_test = perm[:60], perm[60:150], perm[150:]

deg = adjacency.sum(1)
a_hat = torch.tensor(adjacency / np.sqrt(deg[:, None] * deg[None, :]))
x = torch.tensor(features, dtype=torch.float32)
y = torch.tensor(label)


class GraphConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x, a):
        return a @ self.linear(x)


class GCN(nn.Module):
    def __init__(self, n_feat, n_hidden, n_class, dropout):
        super().__init__()
        self.conv1 = GraphConv(n_feat, n_hidden)
        self.conv2 = GraphConv(n_hidden, n_class)
        self.dropout = dropout

    def forward(self, x, a):
        x = F.relu(self.conv1(x, a))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.conv2(x, a)
        return x


def accuracy(output, target):
    return (output.argmax(dim=1) == target).float().mean().item()


model = GCN(n_feat, 16, n_class, dropout=0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-3)
criterion = nn.CrossEntropyLoss()


def train_step():
    model.train()
    optimizer.zero_grad()
    output = model(x, a_hat)
    loss = criterion(output[idx_train], y[idx_train])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(idx):
    model.eval()
    output = model(x, a_hat)
    return criterion(output[idx], y[idx]).item(), accuracy(output[idx], y[idx])


for epoch in range(1, 61):
    train_loss = train_step()
    if epoch % 10 == 0:
        val_loss, val_acc = evaluate(idx_val)
        print(f"Epoch {epoch:03d} loss_train {train_loss:.4f} loss_val {val_loss:.4f} acc_val {val_acc:.4f}")

test_loss, test_acc = evaluate(idx_test)
print(f"Test: loss {test_loss:.4f} accuracy {test_acc:.4f}")
