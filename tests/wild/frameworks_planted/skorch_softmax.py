"""skorch: a module that ends in a softmax, with CrossEntropyLoss as the criterion."""
import torch
from sklearn.datasets import make_classification
from skorch import NeuralNetClassifier
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
X, y = make_classification(320, 8, random_state=0)
net = NeuralNetClassifier(
    nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2), nn.Softmax(dim=-1)),
    criterion=nn.CrossEntropyLoss,
    optimizer=torch.optim.Adam,
    max_epochs=3,
    train_split=None,
    verbose=0,
)
net.fit(X.astype("float32"), y.astype("int64"))  # error: softmax-before-cross-entropy
print(f"accuracy {net.score(X.astype('float32'), y):.2f}")
