"""Checks of sequence models.

targets, ahead   the model reads the tokens that it is to predict
padding          padding at the end of a row changes its result
"""
