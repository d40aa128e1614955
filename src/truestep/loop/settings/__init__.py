"""Settings of a run: from code, files, the environment and flags; limits of length and time."""
