"""`truestep verify-resume`: a run killed and resumed beside one that was not, and the state that is missing."""
