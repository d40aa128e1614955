"""States of gradients, and the calls that clear, clip and scale them.

ledger: the rules by which gradients change state
gradient_states: the states, and the records of single gradients
zero: the probe of `zero_grad()`
clip: the probe of gradient clipping
scaler: the probe of GradScaler
scales: gradients that carry the scale of a GradScaler
ineffective_freezes: attributes that were meant to freeze parameters
random_values: values of weights that look random
leaf_groups: lists and dicts of tensors that are parameters
plain_tensors: tensors that were to be parameters
"""
