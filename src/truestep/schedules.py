"""Learning-rate schedules whose horizon is taken from the run."""
