"""Softmaxes, norms and similarities, on the tape of a loss.

penalties: norms of gradients
similarities: similarities of unit vectors in a softmax
unit_vectors: products of vectors with a norm of one, such as cosines by hand
weighted_sums: the weights of self-attention by hand, and scores that labels pick from
"""
