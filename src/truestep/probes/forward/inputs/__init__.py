"""Values that models are called on.

reads: mean, spread and range of arguments
first_norm: inputs of the first batch normalisation next to its statistics
axes: images, next to the same memory read in other orders of the axes
graphs: edges of batches of graphs, next to the graphs of their nodes
levels: levels of values that were measured in steps, and normalisation with own statistics
"""
