"""Checkpoints: written so that a crash loses nothing, verified when read, compared on resume; weights from files."""
