"""Healthy: skorch inside a scikit-learn pipeline and grid search, with a schedule per batch and early stopping."""
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping, GradientNormClipping, LRScheduler
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
X, y = make_classification(400, 12, n_informative=6, random_state=0)
X, y = X.astype("float32"), y.astype("int64")


class Net(nn.Module):
    def __init__(self, hidden=16, dropout=0.2):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 2))

    def forward(self, X):
        return self.layers(X)


net = NeuralNetClassifier(
    Net,
    criterion=nn.CrossEntropyLoss,
    optimizer=torch.optim.Adam,
    lr=1e-2,
    batch_size=32,
    max_epochs=8,
    iterator_train__shuffle=True,
    callbacks=[
        LRScheduler(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=8),
        GradientNormClipping(1.0),
        EarlyStopping(patience=6),
    ],
    verbose=0,
)
search = GridSearchCV(make_pipeline(StandardScaler(), net), {"neuralnetclassifier__module__hidden": [8, 24]}, cv=2)
search.fit(X, y)
print(f"accuracy {search.score(X, y):.2f} {search.best_params_}")
