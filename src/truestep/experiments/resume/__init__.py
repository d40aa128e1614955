"""`truestep verify-resume`: compare a run that was killed and resumed with an uninterrupted one.

resume: the experiment: kills, resumed runs and their verdicts
missing: the pieces of state that a resumed run lacks, with remedies
trace: the recorded steps of a run, and their differences
"""
