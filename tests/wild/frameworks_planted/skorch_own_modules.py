"""skorch: a target that broadcasts, a sigmoid before the logits loss, layers in a plain list, an optimizer for the head alone."""
import warnings

import torch
from sklearn.datasets import make_classification
from skorch import NeuralNet, NeuralNetBinaryClassifier, NeuralNetClassifier
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
X, y = make_classification(320, 8, random_state=0)
X, y = X.astype("float32"), y.astype("int64")
quiet = {"max_epochs": 3, "train_split": None, "verbose": 0, "iterator_train__shuffle": True, "batch_size": 32}


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.middle, self.head = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 2)

    def forward(self, X):
        return self.head(self.middle(self.body(X).relu()).relu()).softmax(-1)


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 2)
        self.hidden = [nn.Linear(16, 16), nn.Linear(16, 16)]

    def forward(self, X):
        X = self.body(X)
        for layer in self.hidden:
            X = X + layer(X).relu()  # error: layers-in-plain-container
        return self.head(X).softmax(-1)


class HeadAndBody(NeuralNetClassifier):
    def initialize_optimizer(self, reason=None):
        parameters = [*self.module_.body.parameters(), *self.module_.head.parameters()]
        self.optimizer_ = torch.optim.SGD(parameters, lr=0.1)  # error: parameters-not-optimized
        return self


regressor = NeuralNet(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)), nn.MSELoss, **quiet)
regressor.fit(X, X.sum(1))  # error: broadcast-target

binary = NeuralNetBinaryClassifier(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid()), **quiet)
binary.fit(X, y.astype("float32"))  # error: sigmoid-before-bce-with-logits

listed = NeuralNetClassifier(Listed, lr=0.1, **quiet)
listed.fit(X, y)
partial = HeadAndBody(Deep, **quiet)
partial.fit(X, y)
print(f"accuracy {listed.score(X, y):.2f} {partial.score(X, y):.2f}")
