"""`truestep verify-resume`: compare a run that was killed and resumed with an uninterrupted one.

resume: the experiment: an uninterrupted run, killed runs and resumed runs
kills: the moments at which a run is killed
trial: one kill and its resumed run, with its verdict
missing: the pieces of state that a resumed run lacks
pieces: all pieces of state, with remedies
"""
