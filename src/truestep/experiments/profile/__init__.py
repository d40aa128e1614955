"""`truestep profile`: where do the time and memory of a script's steps go?

profile: the experiment: the run and its result as numbers
bottleneck: sentences about the phases, modules and lines that dominate
"""
