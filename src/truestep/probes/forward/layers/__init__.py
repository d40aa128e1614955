"""Layers inside of models.

norms: values that layers of batch normalization take statistics from
statistics: statistics of batch normalization, in evaluations and in frozen layers
settings: settings of layers that no training uses
repeated: containers that hold one layer in several places
unwritten: parameters that no operation has written
columns: outputs of a layer that a loss selects by their place
joins: the source of operations that join results
twins: layers that run in two places, and their twins in none
"""
