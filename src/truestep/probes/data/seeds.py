"""Seeds of the global generator. Seam: ``torch.manual_seed``.

After a seed that its line has set before, the state of the generator is compared at the next backward pass: another
state shows that the training drew numbers, and that they are those that it drew after the earlier seed.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack
from typing import Any

from truestep.events import DrawsRepeated, Seeded, Site
from truestep.probes.context.probe import Probe, sees
from truestep.seams.code.weaving import compiling
from truestep.seams.patch import patch

_MOST_LINES, _MOST_SEEDS = 256, 8


class SeedProbe(Probe):
    """Emits `Seeded` and `DrawsRepeated`."""

    def install(self, stack: ExitStack) -> None:
        scene, torch = self.scene, self.scene.torch
        self._seeds: dict[int, list[int]] = {}
        """Line to the first seeds that it has set."""
        self._site: Site | None = None
        self._state: Any = None
        """State of the generator after a seed that was set again; None if nothing is to be compared."""
        compiles = compiling(torch)

        @functools.wraps(torch.manual_seed)
        def manual_seed(seed: Any) -> Any:
            generator = original(seed)
            if scene.active and not compiles() and not scene.depth.fetching:
                self.seeded(generator)
            return generator

        original = patch(stack, torch, "manual_seed", manual_seed)
        patch(stack, torch.random, "manual_seed", manual_seed)
        scene.seeds = self

    @sees
    def seeded(self, generator: Any) -> None:
        """Emit a seed."""
        site = self.scene.site()
        if id(site) not in self._seeds and len(self._seeds) == _MOST_LINES:
            return
        seeds, seed = self._seeds.setdefault(id(site), []), generator.initial_seed()
        again = seed in seeds
        if not again and len(seeds) < _MOST_SEEDS:
            seeds.append(seed)
        self.scene.tell(Seeded, seed=seeds.index(seed) if seed in seeds else -1, site=site)
        self._site, self._state = site, generator.get_state() if again else None

    @sees
    def loader_started(self) -> None:
        """Leave out the number that a DataLoader draws at the start of each pass: alone it does not change the data."""
        if self._state is not None:
            self._state = self.scene.torch.default_generator.get_state()

    @sees
    def compare(self) -> None:
        """Emit that the training drew numbers since the seed; run before a backward pass."""
        if self._state is None:
            return
        before, self._state = self._state, None
        if not before.equal(self.scene.torch.default_generator.get_state()):
            self.scene.tell(DrawsRepeated, site=self._site)
