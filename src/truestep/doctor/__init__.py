"""A check-up of this machine for training: facts that are read or measured, and advice that follows from them.

    facts = examine(Path("runs"))
    for advice in advise(facts):
        print(advice.text)

Facts, advice and the sheet with both are separate: `advise` and `sheet` are pure functions of `Facts`. Nothing here
imports torch: it is queried in a child process, so that a torch that crashes or hangs becomes a fact as well.

facts, readers/          the facts, and the modules that read them
examine                  all facts about this machine
advice/, advise          advice by subject; all advice on a machine
versions                 the tested versions, and advice on others
sheet, document          facts and advice as lines, and as JSON
"""

from __future__ import annotations

from truestep.doctor.advice.advice import Advice, Level
from truestep.doctor.advise import advise
from truestep.doctor.document import document
from truestep.doctor.examine import examine
from truestep.doctor.facts import Facts
from truestep.doctor.sheet import Group, SheetLine, sheet, summary

__all__ = ["Advice", "Facts", "Group", "Level", "SheetLine", "advise", "document", "examine", "sheet", "summary"]
