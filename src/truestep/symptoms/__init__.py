"""Symptoms, and the failures that cause them: the way from an observation to a rule or a post-mortem. Needs no torch.

catalogue  the symptoms, read from symptoms.toml in the order in which a training is debugged
search     symptoms and pages that fit the words of a user
"""

from truestep.symptoms.catalogue import SYMPTOMS, Symptom, sentence
from truestep.symptoms.search import Match, search

__all__ = ["SYMPTOMS", "Match", "Symptom", "search", "sentence"]
