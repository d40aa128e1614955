"""Noise in the inputs of models, as in denoising diffusion.

targets  noise that a model is to predict, next to its input
process  shares of samples and noise in an input
"""
