"""Two tasks of other classes one after the other, and the forgetting of the first: the second lies between sampled steps."""
import torch, torch.nn.functional as F
from sklearn.datasets import load_digits
digits = load_digits()
X = torch.tensor(digits.data, dtype=torch.float32) / 16
Y = torch.tensor(digits.target)
perm = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))
X, Y = X[perm], Y[perm]
is_test = torch.arange(len(X)) >= 1300
def task(classes):
    member = torch.isin(Y, torch.tensor(classes)); tr, te = member & ~is_test, member & is_test
    return (X[tr], Y[tr]), (X[te], Y[te])
task_a, task_b = task([0, 1, 2, 3, 4]), task([5, 6, 7, 8, 9])
net=torch.nn.Sequential(torch.nn.Linear(64,100),torch.nn.ReLU(),torch.nn.Linear(100,10))
opt=torch.optim.SGD(net.parameters(),lr=0.05)
def accuracy(data):
    with torch.no_grad(): return (net(data[0]).argmax(1) == data[1]).float().mean().item()
def train(data, g, epochs):
    for _ in range(epochs):
        for rows in torch.randperm(len(data[0]), generator=g).split(32):
            loss = F.cross_entropy(net(data[0][rows]), data[1][rows])
            opt.zero_grad(); loss.backward(); opt.step()
g = torch.Generator().manual_seed(1)
train(task_a[0], g, 12)
print(accuracy(task_a[1]))
train(task_b[0], g, 4)
print(accuracy(task_a[1]), accuracy(task_b[1]))
