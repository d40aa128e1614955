"""Healthy: GCN on one graph with a dense normalised adjacency: the whole graph every epoch, masks choose train and test nodes."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = Parameter(torch.empty(in_features, out_features))
        self.bias = Parameter(torch.empty(out_features))
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        return torch.mm(adj, torch.mm(input, self.weight)) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.gc2(x, adj)
        return F.log_softmax(x, dim=1)


def load_data(n=180, classes=3):
    labels = torch.arange(n) % classes
    prob = torch.where(labels[:, None] == labels[None], 0.12, 0.01)
    adj = torch.bernoulli(prob).triu(1)
    adj = adj + adj.t() + torch.eye(n)
    d = adj.sum(1).rsqrt()
    adj = d[:, None] * adj * d[None]
    features = torch.randn(n, 16) + 0.5 * F.one_hot(labels, 16)
    perm = torch.randperm(n)
    return adj, features, labels, perm[:36], perm[36:80], perm[80:]


def accuracy(output, labels):
    return (output.max(1)[1] == labels).double().mean().item()


torch.manual_seed(42)
torch.set_num_threads(1)
adj, features, labels, idx_train, idx_val, idx_test = load_data()
model = GCN(nfeat=features.shape[1], nhid=24, nclass=3, dropout=0.3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def train(epoch):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()

    # Evaluate validation set performance separately, deactivates dropout during validation run.
    model.eval()
    with torch.no_grad():
        output = model(features, adj)
        loss_val = F.nll_loss(output[idx_val], labels[idx_val])
    if epoch % 20 == 0:
        print("Epoch: {:04d} loss_train: {:.4f} loss_val: {:.4f} acc_val: {:.4f}".format(
            epoch, loss_train.item(), loss_val.item(), accuracy(output[idx_val], labels[idx_val])))


def test():
    model.eval()
    with torch.no_grad():
        output = model(features, adj)
    print("Test set results: accuracy= {:.4f}".format(accuracy(output[idx_test], labels[idx_test])))


for epoch in range(81):
    train(epoch)
test()
