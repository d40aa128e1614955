"""Backward passes and the autograd graph (the tape).

backward: the probe of backward passes and `autograd.grad`
anomaly: anomaly detection that is on
gradient_reads: code around a backward pass that reads the gradients
cuts: the expression that cuts the graph
kept_graphs: graphs that outlive their step
retained_graphs: graphs of `retain_graph=True`
nan_search: the place of NaN and infinity
origin: the operations that made a tensor
signs: the loss function before a backward pass, and its sign
tape: parameters and operations that the loss reaches
chained_layers: linear layers without a nonlinear operation between them, and with repeated inputs
attention: softmaxes with a use that shows their dimension
loss_terms: terms of a loss, by the tape and the source
policies: entropies and ratios in the losses of policies
followed_losses: losses that no backward pass goes through
loss_values: values of losses
taken_steps: updates by hand with gradients of `autograd.grad`
views: views that a transpose was intended for
"""
