"""`truestep tune`: speed-ups timed in turns with the script as it is, and the statistics of their ratios."""
