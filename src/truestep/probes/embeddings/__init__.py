"""Reads of embeddings: the rows that a model asks them for.

reads      rows read in training, at sampled steps, next to those of other embeddings of the call
untrained  rows read in evaluations that no step has trained
"""
