# says: the same weights under names that begin with `module.`
# says: key.removeprefix('module.')
import torch
from torch import nn

model = nn.Linear(4, 2)
state = torch.nn.DataParallel(model).state_dict()
model.load_state_dict(state)  # died: weights-do-not-fit
