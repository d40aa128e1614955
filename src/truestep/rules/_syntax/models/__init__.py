"""Models, losses and parameters.

- `averages`: averages of weights that a file writes out.
- `graphs`: graphs that are cut or carried along.
- `layers`: layers and how they are built.
- `losses`: losses and their inputs.
- `masks`: masks of scores before a softmax.
- `modules`: the classes of modules.
- `optimizers`: settings of optimizers out of range.
- `parameters`: parameters and the optimizers that hold them.
- `repeated`: lists that hold one model several times.
- `states`: states, copies and averages of models.
- `totals`: losses that are kept together with their graphs.
- `unwritten`: parameters with the memory that `torch.empty` returned.
"""
