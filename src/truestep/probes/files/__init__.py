"""Files and state dicts: saved and loaded; exported models: saved.

checkpoint: the probe of files and state dicts
contents: states in a loaded file, and the resumption of a training
kept_copies: copies of state dicts that are never loaded
state_dicts: tensors of a state dict, and the names that a load found
exported: the probe of exported models
"""
