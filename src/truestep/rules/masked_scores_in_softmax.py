"""Evidence from the tape of a loss, with the values that a softmax and its mask have saved for the backward pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from truestep.events import Event, MaskedScoresRead, RunEnded, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._formulas import program_of, site_of
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import masks
from truestep.syntax import Program, Suspicion

_LEAST_SHARE = 0.02
_LEAST_READS = 2
_FORMS = {"fill": "`masked_fill`", "where": "`torch.where`", "product": "a product with a mask", "put": "an assignment"}


class MaskedScoresInSoftmax(Rule):
    """Scores that a mask sets to zero take part in the softmax: the masked positions get a weight.

    What it does
    ------------
    Finds softmaxes on the tapes of the first losses with a mask right before them, or behind views and copies only:
    ``masked_fill``, ``torch.where``, an assignment to ``scores[mask]`` or a product with zeros and ones. Reads the
    weights that they gave to the masked positions. Reports them if these are at least 2 % on average in rows that
    have both masked positions and others.

    Also reports attention between the positions of a sequence if the mask always covers all scores of some queries and
    no keys, and the other queries give the positions of these at least 2 % of their weights.

    Why it matters
    --------------
    A score of zero is an ordinary score, since exp(0) is 1. With a mask for padding, the result depends on the length
    of the longest sample in the batch; with a causal mask, a model reads the tokens that it predicts. In the proof,
    texts that are padded to 200 words instead of 12 are classified with an accuracy of 0.31 to 0.71 instead of 0.92.

    Example
    -------
    ::

        scores = scores.masked_fill(tokens == PAD, 0.0)
        weights = scores.softmax(dim=-1)                # exp(0) = 1 for each masked position

    Fix
    ---
    Set masked scores to minus infinity::

        scores = scores.masked_fill(tokens == PAD, float("-inf"))

    Known false alarms
    ------------------
    Scores that are selected by their values, such as the largest ones of a row, if the rest is meant to keep
    a weight. Not reported:

    - rows without or with only masked positions, and about one masked position in each row, as the diagonal of
      a table of pairs
    - limits from below or above, and small scores set to zero, as the other scores show
    - weights that are multiplied by the mask again behind the softmax, or by values of zero
    - masked scores that are learned, copies without a gradient, and parameters times a mask, which are pruned
    - masks that look like those of a dropout and are another one at each step, unless the program calls them a mask

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html
    """

    id = "masked-scores-in-softmax"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    watches = (MaskedScoresRead,)
    needs = (MaskedScoresRead,)
    explains = ("target-in-input", "padding-changes-output")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return masks.masked_scores_in_softmax(program)

    def __init__(self) -> None:
        super().__init__()
        self._reads: dict[Site | None, list[MaskedScoresRead]] = defaultdict(list)
        self._first: dict[Site | None, int] = {}
        """Step of the first read of a line."""

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, MaskedScoresRead):
            self._reads[event.site].append(event)
            self._first.setdefault(event.site, run.step)

    def ended(self, event: RunEnded, run: Progress) -> None:
        for site, reads in self._reads.items():
            over = [read for read in reads if read.queries and read.share >= _LEAST_SHARE]
            if over and len(over) == len(reads) >= _LEAST_READS:
                self._over_queries(site, over, run)
                continue
            reads = [read for read in reads if not read.queries]
            if not reads:
                continue
            worst = max(reads, key=lambda read: (read.share >= _LEAST_SHARE and not read.at_random, read.share))
            if worst.share >= _LEAST_SHARE:
                self._found(site, worst, reads, run)

    def _over_queries(self, site: Site | None, reads: list[MaskedScoresRead], run: Progress) -> None:
        share = max(read.share for read in reads)
        files = dict.fromkeys((*(() if site is None else (site.path,)), *reads[0].files))
        known = [(path, program) for path in files if (program := program_of(path)) is not None]
        places = [site_of(path, one.tree, node) for path, one in known for node in masks.masks_of_rows(one)]
        alone = places[0] if len(places) == 1 else None
        draft = self.report(
            alone or site,
            f"a mask of attention covers queries, and the softmax gives {share:.0%} of its weight to these positions",
            run=run,
            label="the mask covers all scores of a query, which makes its weights equal",
            related=() if alone is None else (Mark(site, "differentiates the result"),),
            help="let the mask cover keys: `mask[:, None, None, :]` for scores of (batch, heads, queries, keys)",
            confidence=Confidence.MEDIUM,
            unit="sampled steps",
            key=site,
        )
        draft.count = draft.total = len(reads)
        draft.first_step = self._first[site]

    def _found(self, site: Site | None, worst: MaskedScoresRead, reads: list[MaskedScoresRead], run: Progress) -> None:
        files = dict.fromkeys((*(() if site is None else (site.path,)), *worst.files))
        places = [] if worst.form == "put" else list(_places(files, product=worst.form == "product"))
        if worst.at_random and not places:
            return  # a dropout by hand, unless the program calls it a mask
        alone = places[0] if len(places) == 1 else None
        draft = self.report(
            site if alone is None else alone[0],
            f"a softmax gives {worst.share:.0%} of its weight to masked scores",
            run=run,
            label=f"masked by {_FORMS[worst.form]}, with scores like those of other positions"
            if alone is None
            else alone[1].label,
            related=() if alone is None else (Mark(site, "differentiates the result"),),
            help='set masked scores to `float("-inf")` before the softmax',
            confidence=Confidence.MEDIUM if worst.log or worst.form in ("where", "put") else Confidence.HIGH,
            unit="sampled steps",
            key=site,
        )
        draft.count = sum(read.share >= _LEAST_SHARE for read in reads)
        draft.total, draft.first_step = len(reads), self._first[site]


def _places(files: Iterable[str], *, product: bool) -> Iterator[tuple[Site, Suspicion]]:
    """Yield the places in files that set masked scores to zero before a softmax, by products or in another way."""
    for path in files:
        program = program_of(path)
        if program is not None:
            for found in masks.masked_scores_in_softmax(program):
                if product is (found.confidence is Confidence.MEDIUM):
                    yield site_of(path, program.tree, found.node), found
