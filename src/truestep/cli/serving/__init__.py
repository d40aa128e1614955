"""Commands for trained models.

- `export`: a checkpoint as a model to serve.
"""
