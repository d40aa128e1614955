"""Backward passes. Seam: the one function through which ``backward`` and ``autograd.grad`` enter the engine."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from truestep import seams
from truestep.events import BackwardEnded, Event, GradientsTaken, HandStepped, Site
from truestep.probes.backward.anomaly import Anomaly
from truestep.probes.backward.attention.penalties import Penalties
from truestep.probes.backward.attention.similarities import read_similarities
from truestep.probes.backward.attention.unit_vectors import UnitVectors
from truestep.probes.backward.attention.weighted_sums import WeightedSums
from truestep.probes.backward.chained_layers import look_for_chains
from truestep.probes.backward.gradient_reads import names_gradients
from truestep.probes.backward.kept_graphs import Keep
from truestep.probes.backward.loss_terms.distances import Distances
from truestep.probes.backward.loss_terms.divergence import read_divergence
from truestep.probes.backward.loss_terms.masked import MaskedScores
from truestep.probes.backward.loss_terms.overlaps import read_overlaps
from truestep.probes.backward.loss_terms.reduced import read_reduced
from truestep.probes.backward.loss_terms.signed_labels import SignedLabels
from truestep.probes.backward.loss_terms.squashed import read_squashed
from truestep.probes.backward.loss_terms.terms import Terms
from truestep.probes.backward.loss_values import LossValues
from truestep.probes.backward.policies.ratios import Ratios
from truestep.probes.backward.retained_graphs import Retained
from truestep.probes.backward.signs import SCALINGS
from truestep.probes.backward.taken_steps import TakenSteps
from truestep.probes.backward.tape import read_tape
from truestep.probes.context.probe import Probe, sees
from truestep.probes.context.values import has_values
from truestep.probes.forward.layers.columns import Columns
from truestep.probes.forward.losses.advantages import Advantages
from truestep.probes.forward.losses.followed_targets import FollowedTargets
from truestep.probes.gradients.leaf_groups import LeafGroups
from truestep.probes.unread.values import UnreadValues
from truestep.probes.variables.ended_rows import EndedRows
from truestep.probes.variables.reward_sums import RewardSums
from truestep.probes.variables.trained import TrainedVariables
from truestep.seams.fsdp import gradients_wait
from truestep.seams.refs import Ref

_SUMS = ("AddBackward0", "SubBackward0")
_SAMPLED_READS = 4
_CHAINS_FOR = 4
"""Steps after the first pass of a line in which its layers are followed: a model does not change its form later."""


class Entered(NamedTuple):
    """A pass that entered the engine."""

    site: Site | None
    root: str = ""
    """Name of the last operation of the loss."""
    divided: bool = False
    """True if this operation divides the loss."""
    same: bool = False
    """True if it begins from the loss of the pass before."""


class BackwardProbe(Probe):
    """Emits `BackwardEnded` and `GradientsTaken`, and at sampled steps the content of the tape."""

    def install(self, stack: ExitStack) -> None:
        self._events: dict[tuple[Any, ...], BackwardEnded] = {}
        self._kinds: dict[type, str] = {}
        self._method = self.scene.torch.Tensor.backward.__code__
        self._weights: dict[int, bool] = {}
        self._plain: set[int] = set()
        """Lines with a backward() that does not get a factor for the loss."""
        self._reads_at = (-1, 0)
        self._retained: Ref | None = None
        """The scalar from which the latest pass began, if that retained its graph."""
        self._stepped_at: Site | None = None
        """Line of the pass that found the latest update by hand."""
        self._repeated: set[int] = set()
        """Weights of layers that had repeated inputs."""
        self._columns = Columns(self.scene)
        self._tensor = self.scene.torch.Tensor
        self._coast = self.scene.coast
        self._thread = threading.get_ident
        self.keep = Keep(self.scene)
        self.retained = Retained(self.scene)
        self.values = LossValues(self.scene)
        self.steps_taken = TakenSteps(self.scene)
        self.anomaly = Anomaly(self.scene)
        self.terms = Terms(self.scene)
        self.distances = Distances(self.scene)
        self.masked = MaskedScores(self.scene)
        self.sums = WeightedSums(self.scene)
        self.units = UnitVectors(self.scene)
        self.labels = SignedLabels(self.scene)
        self.penalties = Penalties(self.scene)
        self.groups = LeafGroups(self.scene)
        self.targets = FollowedTargets(self.scene)
        self.ends = self.scene.ends = EndedRows(self.scene)
        self.advantages = Advantages(self.scene)
        self.returns = RewardSums(self.scene)
        self.ratios = Ratios(self.scene)
        self.unread = self.scene.unread = UnreadValues(self.scene)
        self.variables = TrainedVariables(self.scene)
        scene, coast = self.scene, self.scene.coast

        def _engine_run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if coast.on and self.is_next(t_outputs):
                passing = coast.events[coast.at]
                result = original(t_outputs, *args, **kwargs)
                if self._coast.on:  # nothing woke it meanwhile
                    coast.at += 1
                else:
                    scene.emit(passing)
                return result
            if not scene.active or in_engine() or (thread() != scene.ledger.thread and not self.take_over()):
                return original(t_outputs, *args, **kwargs)
            coast.wake()
            accumulates = kwargs.get("accumulate_grad", False)
            scene.unseen.met(t_outputs)
            entered = self.before(t_outputs, args, accumulates)
            result = original(t_outputs, *args, **kwargs)
            if entered is not None:
                if accumulates:
                    self.after(entered, len(args) > 1 and bool(args[1]), t_outputs)
                else:
                    self.taken(entered.site, len(args) > 2 and bool(args[2]))
                scene.listener.stop()
            return result

        in_engine, thread = seams.backward.engine_state(), threading.get_ident
        original = seams.backward.wrap(stack, _engine_run_backward)

    def take_over(self) -> bool:
        """Observe this thread if the one before has ended, else end observation. Return True if it is observed.

        The engine replaces gradients without holding Python's lock: to read one while another thread runs a backward
        pass over it is a crash.
        """
        scene, ledger = self.scene, self.scene.ledger
        with ledger.lock:
            if ledger.thread and any(thread.ident == ledger.thread for thread in threading.enumerate()):
                scene.lose_sight("several threads train at once")
            else:
                ledger.thread = threading.get_ident()
            return scene.active

    def is_next(self, outputs: Any) -> bool:
        """Return True if this is the expected backward pass of every round, from a finite loss."""
        coast = self._coast
        aside = self.scene.unseen.begin()
        try:
            root = outputs[0]
            if coast.keys[coast.at] != self._key(root, 5) or self._thread() != coast.thread:
                return False
            if (coast.every or not coast.number & 1) and root.is_cpu:
                if root.numel() != 1:
                    return False
                value = root.item()
                self.scene.losses.last = value
                self.scene.losses.site = coast.events[coast.at].site  # type: ignore[attr-defined]
                return bool(value - value == 0.0)
            return True
        except Exception:
            self.scene.fail()
            return False
        finally:
            if aside:
                aside.close()

    def _key(self, root: Any, depth: int) -> int:
        """Return a key that is equal for the same backward pass of a later round; 0 without one.

        Args:
            root: the loss.
            depth: frames between this method and the caller of ``backward()``.
        """
        if type(root) is not self._tensor:
            return 0
        try:
            return id(type(root.grad_fn)) + sys._getframe(depth).f_lasti
        except ValueError:
            return 0

    @sees
    def before(self, outputs: Any, args: tuple[Any, ...], accumulates: bool) -> Entered:
        """Examine the loss, the gradients and, at sampled steps, the tape; keep no reference to them."""
        method = sys._getframe(4)
        site = self.scene.sites.quick(6 if method.f_code is self._method else 5)
        sampling = self.scene.sampling
        if not sampling.on:
            return self._examined(outputs, args, accumulates, site)
        with sampling.timed(outputs[0] if outputs else None):
            return self._examined(outputs, args, accumulates, site)

    def _examined(self, outputs: Any, args: tuple[Any, ...], accumulates: bool, site: Site | None) -> Entered:
        scene, sampled = self.scene, self.scene.sampling.on
        retains = accumulates and len(args) > 2 and bool(args[1]) and not args[2]
        if retains or scene.losses.retained:
            self.retained.look(outputs, site, retains=retains)
        if not accumulates:
            scene.losses.unknown()
            self._look_at_taken(outputs, site, args)
            self._step_taken(outputs, site, args)
            return Entered(site)
        if scene.seeds is not None:
            scene.seeds.compare()
        root = outputs[0] if outputs else None
        node: Any = getattr(root, "grad_fn", None)
        kind = "leaf" if node is None else self._kinds.get(type(node)) or self._kind(node)
        divided = self._is_divided(node, kind)
        if not divided and id(site) not in self._plain:
            divided = self._weighed(site, args[0] if args else ())
        with scene.ledger.lock:
            moved = scene.ledger.before_backward() if scene.active else 0
            mixed = self._mixed_by_hand() if moved else 0
            if sampled and scene.scales.in_use and scene.active:
                scene.scales.before_backward(outputs, kind)
        if moved and not scene.depth.step:  # the closure of an optimizer is called at other weights
            self._stepped_at = site
            if scene.unwritten is not None:
                scene.unwritten.moved()
            scene.close_step(HandStepped(site=site, moved=1, mixed=min(1, mixed)))
            sampled = scene.sampling.on
        if type(root) is self._tensor and (scene.losses.every or sampled or not scene.sampling.step & 1):
            self.values.look(root, node, site)
        if self.distances.waiting:
            self.distances.confirm()
        if sampled and self._another_read():
            if scene.functions is not None:
                scene.functions.passing(node, scene.sites.frame(1))
            self._read(outputs, node, site, args)
            self.variables.look(scene.sites.frame(1))
            self.anomaly.look(site)
        elif sampled:
            scene.losses.unknown()
        elif not moved and scene.active and scene.ledger.outlived():
            # No step ends without them, and so none is sampled in which they would be found.
            leaves = read_tape(scene, [o for o in outputs if hasattr(o, "grad_fn")], site)
            self.groups.look(leaves, scene.sites.frame(1))
        if not self.keep.full:
            self.keep.mark(node, site, backward=True)
        same = self._retained is not None and self._retained() is root and not self._weights.get(id(site), False)
        alone = retains and root is not None and len(outputs) == 1 and root.numel() == 1
        self._retained = Ref(root) if alone else None
        return Entered(site, kind, divided, same)

    def _read(self, outputs: Any, node: Any, site: Site | None, args: tuple[Any, ...]) -> None:
        """Read the tape of a loss at a sampled step."""
        scene = self.scene
        leaves = read_tape(scene, [o for o in outputs if hasattr(o, "grad_fn")], site)
        self.groups.look(leaves, scene.sites.frame(1))
        self.terms.look(node, scene.sites.own(1), site)
        self.distances.look(node, site)
        self.targets.look(node, scene.sites.own(1), site)
        self.ends.look(node, scene.sites.own(1), site)
        inputs = args[3] if len(args) > 3 and type(args[3]) is tuple else ()
        self.advantages.look(node, scene.sites.own(1), site, inputs)
        if not self.ratios.look(node, scene.sites.own(1), site):
            self.returns.look(node, scene.sites.own(1), site)
        read_overlaps(scene, node, site)
        read_squashed(scene, node, site)
        read_reduced(scene, node, scene.sites.own(1), site)
        read_similarities(scene, node, scene.sites.own(1), site)
        read_divergence(scene, node, site)
        self.masked.look(node, site)
        self.sums.look(node, site)
        self.units.look(node, site)
        self.labels.look(node, site)
        self.penalties.look(node, site)
        self.unread.look(scene.sites.frame(1), backward=True)
        if scene.checks is not None:
            scene.checks.differentiated(node, site)
        if node is not None and self.values.begun.get(site, 0) + _CHAINS_FOR > scene.sampling.step:
            look_for_chains(scene, node, site, self._repeated, self._columns)
        else:
            self._columns.compare()

    @sees
    def _step_taken(self, outputs: Any, site: Site | None, args: tuple[Any, ...]) -> None:
        """Close a step if the leaves were updated by hand, and read the loss of a training in sampled steps."""
        scene, steps = self.scene, self.steps_taken
        if steps.moved(outputs, args, site):
            scene.close_step(HandStepped(site=site, moved=1, mixed=0))
        if not steps.trains(site):
            if steps.is_early(site):
                self.unread.look(scene.sites.frame(1), backward=True)  # an update may be lost
            return
        transformed, root = steps.is_transformed(), steps.value_of(outputs[0])
        if type(root) is self._tensor and (scene.sampling.on or not scene.sampling.step & 1):
            self.values.look(root, outputs[0].grad_fn, site)
        if self.distances.waiting:
            self.distances.confirm()
        if scene.sampling.on and not transformed and self._another_read():
            if scene.functions is not None:
                scene.functions.passing(root.grad_fn, scene.sites.frame(1))
            self._read(outputs, root.grad_fn, site, args)

    @sees
    def _look_at_taken(self, outputs: Any, site: Site | None, args: tuple[Any, ...]) -> None:
        """Look at variables and derivatives at a call of ``autograd.grad``."""
        self.terms.derivatives.taken(outputs, args, site, self.scene.sites.own(1))
        self.variables.taken(args[3] if len(args) > 3 and type(args[3]) is tuple else (), self.scene.sites.frame(1))

    def _is_divided(self, node: Any, kind: str) -> bool:
        """Return True if a loss ends in a division or a multiplication; that of a scaler does not count."""
        if kind in _SUMS:
            return _divided_terms(node)
        if kind not in SCALINGS or self.scene.scales.scaled_by is None:
            return kind in SCALINGS
        inner = node.next_functions[0][0] if node.next_functions else None
        return inner is not None and (inner.name() in SCALINGS or _divided_terms(inner))

    def _weighed(self, site: Site | None, gradients: Any) -> bool:
        """Return True if backward() at this line gets a factor for the loss; decided at its first call."""
        weighed = self._weights.get(id(site))
        if weighed is None:
            first = gradients[0] if gradients else None
            weighed = first is not None and first.numel() == 1 and has_values(first) and first.item() != 1.0
            self._weights[id(site)] = weighed
            if not weighed:
                self._plain.add(id(site))
        return weighed

    def _kind(self, node: Any) -> str:
        """Return the name of an operation; each operation of torch has its type, which is a fast key."""
        name = str(node.name())
        if type(node).__name__ == name:
            self._kinds[type(node)] = name
        return name

    def last(self) -> Iterator[Event]:
        """Yield the value of the latest loss, and the update by hand that no backward pass followed."""
        ledger = self.scene.ledger
        yield from self.values.last()
        yield from self._columns.last()
        if self._stepped_at is not None:
            with ledger.lock:
                moved = ledger.before_backward()
                mixed = self._mixed_by_hand() if moved else 0
            if moved:
                yield HandStepped(site=self._stepped_at, moved=1, mixed=min(1, mixed))
        if self.steps_taken.waits():
            yield HandStepped(site=self.steps_taken.site, moved=1, mixed=0)

    def _mixed_by_hand(self) -> int:
        """Return the number of gradients that updates by hand have mixed; none for averages, which use no gradient."""
        mixed = self.scene.ledger.mixed_by_hand()
        return mixed if mixed and names_gradients(self.scene.sites.own_files()) else 0

    def _another_read(self) -> bool:
        """Return True if the tape is read at this backward pass: at the first few of a sampled step."""
        step, reads = self._reads_at
        reads = reads + 1 if step == self.scene.sampling.step else 1
        self._reads_at = (self.scene.sampling.step, reads)
        return reads <= _SAMPLED_READS

    @sees
    def taken(self, site: Site | None, create_graph: bool) -> None:
        """Emit the event of a call of ``autograd.grad``."""
        self.scene.tell(GradientsTaken, site=site, create_graph=create_graph)

    @sees
    def after(self, entered: Entered, retained: bool, outputs: Any) -> None:
        """Examine the gradients again and emit the event."""
        scene = self.scene
        site, root, divided, same = entered
        with scene.ledger.lock:
            if not scene.active:
                return
            counts = scene.ledger.after_backward()
            if scene.scales.in_use:
                scene.scales.after_backward(site, seen=scene.sampling.on)
        if scene.sampling.on and scene.checks is not None:
            scene.checks.passed_back(site)
        while scene.losses.counted:
            scene.emit(scene.losses.counted.pop(0))
        scaled = scene.scales.scaled_by is not None
        if scaled:
            scene.scales.scaled_by = None
            for panel in scene.ledger.panels.values():
                panel.scaled = True
        in_step = scene.depth.step > 0
        if scene.unwritten is not None:
            scene.unwritten.differentiated(in_step=in_step)
        waits = not counts[1] and counts[0] > 0 and gradients_wait()
        # At every step: by this key without the cost of `tell`.
        key = (id(site), root, divided, retained, same, counts, in_step, scaled, scene.loader, waits)
        event = self._events.get(key)
        if event is None:
            event = self._events[key] = BackwardEnded(
                site=site,
                root=root,
                divided=divided,
                retained=retained,
                same_loss=same,
                observed=counts[0],
                written=counts[1],
                onto_used=counts[2],
                onto_fresh=counts[3],
                in_step=in_step,
                scaled=scaled,
                loader=scene.loader,
                waits=waits,
            )
        scene.emit(event)
        if self._coast.learning and len(outputs) == 1:
            self._coast.name(self._key(outputs[0], 6))


def _divided_terms(node: Any) -> bool:
    """Return True if an operation is a sum of divided terms, as in ``ce / n + penalty / n``."""
    terms = node.next_functions if node.name() in _SUMS else ()
    return bool(terms) and all(term is not None and term.name() == "DivBackward0" for term, _ in terms)
