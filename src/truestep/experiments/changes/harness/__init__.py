"""Changes that experiments need for themselves.

seeded: another seed
controlled: chosen sources of randomness are the same in every run
first_batches: repeat the first batches of loaders
called_again: repeat the first arguments of models and losses
no_dropout: switch dropout off
scaled_rates: scale the learning rates
killed: kill the process at a chosen moment
resume_auto: resume a run of the toolkit
"""
