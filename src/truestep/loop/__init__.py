"""The toolkit for a training loop that you own: `Run` and its parts, in rooms by subject."""
