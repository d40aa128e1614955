"""Settings of a run.

settings  the dataclass `Settings`, and the checks of its values
sharding  checks of the settings of divided parameters
names     names of settings in other trainers, and checks of names
flags     settings from the command line, a file and environment variables (`Settings.from_flags`)
limits    limits on epochs, steps and time, and the interval between checkpoints
"""
