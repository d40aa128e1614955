# says: `labels` is float32, and labels of classes are int64
# says: `labels.long()`
import torch
import torch.nn.functional as F

logits = torch.randn(4, 3, requires_grad=True)
labels = torch.tensor([0.0, 1.0, 2.0, 1.0])  # related
loss = F.cross_entropy(logits, labels)  # died: different-types
