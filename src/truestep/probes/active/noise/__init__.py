"""Noise in the inputs of models, as in denoising and in diffusion.

targets      noise that a model is to predict, next to its input
process      shares of samples and noise in an input
kept         inputs with noise that are the target too
differences  errors that are computed by hand
corruption   random corruption, as opposed to other changes of samples
unused       variables that are read to make others only
"""
