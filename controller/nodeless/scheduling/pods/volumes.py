"""Where the volumes of a pod can be reached, and how many of them a node must attach.

`settle` turns the claims of a pod into terms on the node, as alternatives, and into amounts of
what CSI drivers can attach. So everything after it deals with requirements and resources only,
and pods of a StatefulSet, which differ in the names of their claims, are one class again.

A claim that is bound is reached where its volume is; one that waits for its first consumer, where
its class may make volumes. A claim that neither a new node nor the scheduler can help refuses its
pod, with the reason. A claim that several pods share is attached to a node once, whichever of them run
there: it stands beside their requests (`PodShape.shared_volumes`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from nodeless.model.plan import RefusalCode
from nodeless.model.pods import NodeSelectorTerm, Pod, PodShape
from nodeless.model.requirements import Conflict
from nodeless.model.resources import Resources, add
from nodeless.model.snapshot import Snapshot
from nodeless.model.volumes import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolumeClaim,
    StorageClass,
    Volume,
    attachments,
)
from nodeless.scheduling.pods.constraints import UnschedulableReason, together


@dataclass(frozen=True, slots=True)
class _Mount:
    """One claim of a pod as far as it is known; that of an `ephemeral` volume may be made later."""

    key: str
    claim: PersistentVolumeClaim | None
    class_name: str | None
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a volume can be reached (alternatives; none: everywhere), and what attaches it."""

    terms: tuple[NodeSelectorTerm, ...]
    driver: str


class Volumes:
    """The volumes of one cluster, looked up for one solve."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._default = default_class(snapshot.storage_classes.values())
        self._shapes: dict[PodShape, PodShape] = {}
        mounted = Counter(
            f"{pod.namespace}/{name}"
            for pod in snapshot.pods.values()
            if pod.shape.claims and not pod.terminal
            for name in set(pod.shape.claims)
        )
        self._shared = frozenset(key for key, number in mounted.items() if number > 1)
        self._for_one_pod = frozenset(key for key, claim in snapshot.volume_claims.items() if claim.one_pod)
        self._users = {
            key: pod.key
            for pod in (snapshot.pods.values() if self._for_one_pod else ())
            if (pod.node_name or pod.nominated_node_name) and not pod.terminal and mounts(pod.shape)
            for key in self._claims_for_one_pod(pod)
        }
        """Pods by the claims that they keep from any other until they are gone, terminating or not, as
        kube-scheduler's plugin VolumeRestrictions has it; a nominated pod is bound next."""

    def settle(self, pod: Pod) -> Pod | UnschedulableReason:
        """The pod with its volumes as terms and resources, or why it cannot be planned.

        A claim that only one pod may use is the first pod's that is settled and does not run.
        """
        if not mounts(pod.shape):
            return pod
        taken = None if pod.node_name else self._taken(pod)
        if taken is not None:
            return taken
        places, shared = [], []
        attached: Resources = {}
        for mount in self._mounts(pod):
            place = self._place(mount)
            if isinstance(place, UnschedulableReason):
                return place
            places.append(place)
            if place.driver and mount.key in self._shared:
                shared.append((mount.key, attachments(place.driver)))
            elif place.driver:
                attached = add(attached, {attachments(place.driver): 1})
        terms = together([place.terms for place in places])
        if isinstance(terms, Conflict):
            return UnschedulableReason(
                RefusalCode.VOLUMES_APART, f"no node can reach all volumes of the pod: {terms}"
            )
        shape = replace(
            pod.shape,
            requests=tuple(sorted({**pod.requests, **attached}.items())),
            claims=(),
            ephemeral_volumes=(),
            shared_volumes=tuple(sorted(shared)),
            volume_terms=terms,
        )
        self._users.update(dict.fromkeys(self._claims_for_one_pod(pod), pod.key))
        return replace(pod, shape=self._shapes.setdefault(shape, shape))

    def _claims_for_one_pod(self, pod: Pod) -> list[str]:
        if not self._for_one_pod:
            return []
        return [mount.key for mount in self._mounts(pod) if mount.key in self._for_one_pod]

    def _taken(self, pod: Pod) -> UnschedulableReason | None:
        for key in self._claims_for_one_pod(pod):
            user = self._users.get(key, pod.key)
            if user != pod.key:
                return UnschedulableReason(
                    RefusalCode.VOLUME_CLAIM_IN_USE,
                    f"persistent volume claim {key} may be used by one pod at a time (ReadWriteOncePod), "
                    f"and pod {user} comes first; hint: wait until that pod is gone, or delete it",
                )
        return None

    def held(self, pods: Iterable[Pod]) -> frozenset[str]:
        """The claims whose volumes are attached for pods that run on a node."""
        return frozenset(mount.key for pod in pods for mount in self._mounts(pod) if self._driver(mount))

    def attached(self, pods: Iterable[Pod]) -> dict[str, int]:
        """How many volumes of each driver a node attaches for pods that run on it, by resource."""
        keys = {
            (mount.key, driver)
            for pod in pods
            for mount in self._mounts(pod)
            if (driver := self._driver(mount))
        }
        counts: dict[str, int] = {}
        for _, driver in sorted(keys):
            counts[attachments(driver)] = counts.get(attachments(driver), 0) + 1
        return counts

    def _mounts(self, pod: Pod) -> Iterator[_Mount]:
        claims = self._snapshot.volume_claims
        for name in dict.fromkeys(pod.shape.claims):
            key = f"{pod.namespace}/{name}"
            claim = claims.get(key)
            yield _Mount(key, claim, claim.storage_class if claim is not None else "")
        for volume, class_name in pod.shape.ephemeral_volumes:
            key = f"{pod.namespace}/{pod.name}-{volume}"
            claim = claims.get(key)
            yield _Mount(key, claim, claim.storage_class if claim is not None else class_name, True)

    def _place(self, mount: _Mount) -> _Place | UnschedulableReason:
        claim = mount.claim
        if claim is None and not mount.ephemeral:
            return UnschedulableReason(
                RefusalCode.VOLUME_CLAIM_NOT_FOUND,
                f"persistent volume claim {mount.key} does not exist; hint: create it",
            )
        if claim is not None:
            fault = _fault_of_claim(claim)
            if fault is not None:
                return UnschedulableReason(
                    RefusalCode.VOLUME_CLAIM_NOT_USABLE, f"persistent volume claim {claim.key} {fault}"
                )
            if claim.volume_name:
                return self._place_of_volume(claim)
        return self._place_of_class(mount)

    def _place_of_volume(self, claim: PersistentVolumeClaim) -> _Place | UnschedulableReason:
        volume = self._snapshot.volumes.get(claim.volume_name)
        if volume is None:
            return UnschedulableReason(
                RefusalCode.VOLUME_NOT_FOUND,
                f"persistent volume {claim.volume_name} of claim {claim.key} does not exist",
            )
        if volume.deletion_timestamp is not None:
            return UnschedulableReason(
                RefusalCode.VOLUME_CLAIM_NOT_USABLE,
                f"persistent volume {volume.name} of claim {claim.key} is being deleted",
            )
        if not claim.bound:
            return UnschedulableReason(
                RefusalCode.VOLUME_CLAIM_NOT_USABLE,
                f"persistent volume claim {claim.key} names volume {volume.name} but is not bound to it yet",
            )
        return _Place(volume.terms, volume.driver)

    def _place_of_class(self, mount: _Mount) -> _Place | UnschedulableReason:
        storage_class = self._class(mount.class_name)
        if storage_class is None:
            if mount.class_name:
                return UnschedulableReason(
                    RefusalCode.STORAGE_CLASS_NOT_FOUND,
                    f"storage class {mount.class_name} of persistent volume claim {mount.key} does not exist",
                )
            wanted = (
                "names no storage class, and none is the default"
                if mount.class_name is None
                else ("asks for a volume without storage class, and is not bound to one")
            )
            return UnschedulableReason(
                RefusalCode.VOLUME_CLAIM_NOT_USABLE, f"persistent volume claim {mount.key} {wanted}"
            )
        if storage_class.binding_mode != WAIT_FOR_FIRST_CONSUMER:
            return UnschedulableReason(
                RefusalCode.VOLUME_CLAIM_NOT_USABLE,
                f"persistent volume claim {mount.key} is not bound yet, and its storage class "
                f"{storage_class.name} does not wait for a node; "
                f"hint: use the binding mode {WAIT_FOR_FIRST_CONSUMER}",
            )
        return _Place(storage_class.terms, storage_class.driver)

    def _class(self, name: str | None) -> StorageClass | None:
        return self._default if name is None else self._snapshot.storage_classes.get(name)

    def _driver(self, mount: _Mount) -> str:
        volume: Volume | None = None
        if mount.claim is not None and mount.claim.volume_name:
            volume = self._snapshot.volumes.get(mount.claim.volume_name)
        if volume is not None:
            return volume.driver
        storage_class = self._class(mount.class_name)
        return storage_class.driver if storage_class is not None else ""


def mounts(shape: PodShape) -> bool:
    """Whether a pod mounts any volume that must be reached."""
    return bool(shape.claims or shape.ephemeral_volumes)


def attachable(driver_limits: Mapping[str, int], names: Iterable[str], endless: int) -> dict[str, int]:
    """Amounts of the attachments among resource names: what limits say, and no end where they are silent."""
    limits = {attachments(driver): limit for driver, limit in driver_limits.items()}
    return {name: limits.get(name, endless) for name in names if name.startswith(attachments(""))}


def without_attachments(resources: Resources) -> dict[str, int]:
    """What is asked of the cloud: attachments are a matter of the node's drivers."""
    return {name: amount for name, amount in resources.items() if not name.startswith(attachments(""))}


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The newest of the classes that are the default; of equal age the first by name."""
    defaults = (storage_class for storage_class in classes if storage_class.default)
    return min(
        defaults, key=lambda storage_class: (-storage_class.created_at, storage_class.name), default=None
    )


def _fault_of_claim(claim: PersistentVolumeClaim) -> str | None:
    if claim.deletion_timestamp is not None:
        return "is being deleted"
    if claim.phase == "Lost":
        return "has lost its volume; hint: make the claim anew"
    return None
