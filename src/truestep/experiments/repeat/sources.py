"""The sources of differences between runs of one script."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A source of differences.

    Attributes:
        name: name in the JSON of the report; that of a controlled source, or "hash".
        title: name for people.
        remedy: one imperative sentence.
    """

    name: str
    title: str
    remedy: str


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            "torch",
            "the global generator of torch",
            "call torch.manual_seed(0) before anything is drawn: before the model is built and the data is split",
        ),
        Source("numpy", "the global generator of numpy", "call np.random.seed(0) before anything is drawn"),
        Source("python", "the generator of the module random", "call random.seed(0) before anything is drawn"),
        Source(
            "system",
            "a generator that takes its seed from the system",
            "pass a seed: np.random.default_rng(0), random.Random(0); leave out torch.seed() and uuid4()",
        ),
        Source(
            "hash",
            "the order of a set, or a hash of a text",
            "sort a set before it is used (sorted(...)), use hashlib in place of hash(), or set PYTHONHASHSEED=0",
        ),
        Source("clock", "the clock", "do not compute with time.time(), and do not make a seed of it"),
        Source(
            "threads",
            "the order of sums in several threads",
            "accept the rounding, or call torch.set_num_threads(1), which is slower",
        ),
        Source(
            "kernels",
            "an operation without a fixed order of its sums",
            "call torch.use_deterministic_algorithms(True), which names operations that have no other implementation",
        ),
    )
}
"""All sources, the most frequent ones first. Each but "hash" is one of the sources of the change `controlled`."""
