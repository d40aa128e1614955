"""`truestep overfit`: train on the first batch only, and explain a loss that does not fall.

overfit: the experiment: the run, its verdict and its sentence
causes: reasons for a loss that does not fall
"""
