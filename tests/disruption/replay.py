"""What a cluster becomes when every command is carried out: the test of decisions over time, without a clock.

Pods go to the replacements that were planned for them, as they are nominated there, the others where the
solver puts them; a replacement becomes the dearest of the types and offerings that it
allows, as a cloud short of everything else would give.
"""

from dataclasses import dataclass, replace

from nodeless.disruption import DisruptionPolicy, disrupt
from nodeless.model import events
from nodeless.model.labels import CAPACITY_TYPE, INITIALIZED, INSTANCE_TYPE, REGISTERED, ZONE
from nodeless.model.nodes import (
    INITIALIZED_CONDITION,
    LAUNCHED,
    REGISTERED_CONDITION,
    Condition,
    Node,
    NodeClaim,
)
from nodeless.scheduling import Policy, solve
from nodeless.state import apply

NOW = 1_700_000_000.0


@dataclass(frozen=True)
class Story:
    """What became of a cluster until its fixed point."""

    price_before: float
    price_after: float
    nodes_before: int
    nodes_after: int
    commands: int
    evictions: int
    still: bool

    @property
    def saving(self):
        """US dollars an hour."""
        return self.price_before - self.price_after


def price_of(snapshot, types):
    """US dollars an hour of all nodes."""
    prices = {
        (kind.name, offering.zone, offering.capacity_type): offering.price
        for kind in types
        for offering in kind.offerings
    }
    return sum(
        prices[node.instance_type, node.zone, node.capacity_type]
        for node in snapshot.nodes.values()
        if snapshot.claim_of(node) is not None
    )


def bound_of(snapshot, types):
    """What the pods cost at least in US dollars an hour, had every node to be bought anew."""
    bare = replace(snapshot, nodes=snapshot.nodes.__class__(), claims=snapshot.claims.__class__())
    for pod in snapshot.pods.values():
        pending = replace(pod, node_name="", unschedulable=True, phase="Pending", ready=False)
        bare = apply(bare, events.PodSeen(pending))
    return solve(bare, dict.fromkeys(bare.pools, types), Policy()).lower_bound


def carried_out(snapshot, decisions, types, now=NOW, *, policy=None, born=None, intended=False):
    """The cluster once all commands are done and every pod runs again.

    New nodes have run since `born`, long ago by default; `intended`: each becomes the type that is meant.
    """
    born = now - 1e6 if born is None else born
    moved = []
    expected: dict[str, str] = {}
    after = snapshot
    for command in decisions.commands:
        for name in command.claims:
            node = snapshot.node_of(snapshot.claims[name])
            moved += [pod for pod in snapshot.pods_on(node.name) if pod.occupies]
            for pod in snapshot.pods_on(node.name):
                after = apply(after, events.PodGone(pod.key))
            after = apply(apply(after, events.NodeGone(node.name)), events.ClaimGone(name))
        for number, planned in enumerate(command.replacements):
            name = f"{command.claims[0]}-r{number}"
            after = _launched(after, _meant(planned) if intended else planned, name, types, born)
            expected.update(dict.fromkeys(planned.pods, name))
    for pod in moved:
        pending = replace(pod, node_name="", unschedulable=True, phase="Pending")
        after = apply(after, events.PodSeen(pending))
    policy = replace(policy or Policy(time_box=0.0), places=expected)
    plan = solve(after, dict.fromkeys(after.pools, types), policy)
    assert not plan.refusals, [str(refusal) for refusal in plan.refusals]
    places = dict(plan.placements)
    for number, planned in enumerate(plan.new_nodes):
        # As provisioning would: what a command left without a place costs what it costs.
        name = f"{len(after.claims)}-p{number}"
        after = _launched(after, _meant(planned) if intended else planned, name, types, born)
        places.update(dict.fromkeys(planned.pods, f"node-{name}"))
    for key, name in places.items():
        pod = replace(after.pods[key], node_name=name, unschedulable=False, phase="Running")
        after = apply(after, events.PodSeen(pod))
    return after


def _meant(planned):
    return replace(planned, alternatives=planned.alternatives[:1])


def _launched(snapshot, planned, name, types, born):
    named = {kind.name: kind for kind in types}
    price, kind, offering = max(
        (
            (offering.price, named[alternative.instance_type], offering)
            for alternative in planned.alternatives
            for offering in named[alternative.instance_type].offerings
            if offering.available and offering.allowed_by(planned.requirements)
        ),
        key=lambda found: (found[0], found[1].name, found[2].zone),
    )
    del price
    labels = {
        **planned.requirements.single_values(),
        **snapshot.pools[str(planned.pool)].labels,
        **kind.requirements.single_values(),
        INSTANCE_TYPE: kind.name,
        ZONE: offering.zone,
        CAPACITY_TYPE: offering.capacity_type,
    }
    conditions = tuple(
        Condition(each, "True", each, "", born)
        for each in (LAUNCHED, REGISTERED_CONDITION, INITIALIZED_CONDITION)
    )
    claim = NodeClaim(
        name=name,
        pool=planned.pool,
        node_class=planned.node_class,
        labels=labels,
        provider_id=f"aws:///{offering.zone}/i-{name}",
        node_name=f"node-{name}",
        created_at=born,
        conditions=conditions,
        capacity=kind.capacity,
        allocatable=kind.allocatable,
    )
    node = Node(
        name=f"node-{name}",
        provider_id=claim.provider_id,
        labels={**labels, INITIALIZED: "true", REGISTERED: "true"},
        capacity=kind.capacity,
        allocatable=kind.allocatable,
        ready=True,
        created_at=born,
    )
    return apply(apply(snapshot, events.ClaimSeen(claim)), events.NodeSeen(node))


def until_still(snapshot, types, policy=None, most_rounds=200, decide=None):
    """Carry out commands until there are none; `decide` takes the place of `disrupt`."""
    policy = policy or DisruptionPolicy()
    catalog = dict.fromkeys(snapshot.pools, types)
    decide = decide or (lambda seen, now: disrupt(seen, catalog, policy, now))
    seen, commands, evictions = snapshot, 0, 0
    for number in range(most_rounds):
        # Single replacements are looked at in turns: a cluster is still when no turn finds any.
        decisions = decide(seen, NOW + 10 * number)
        if not decisions.commands:
            break
        commands += len(decisions.commands)
        evictions += sum(command.evictions for command in decisions.commands)
        seen = carried_out(seen, decisions, types)
    still = not decide(seen, NOW).commands
    return Story(
        price_of(snapshot, types),
        price_of(seen, types),
        len(snapshot.nodes),
        len(seen.nodes),
        commands,
        evictions,
        still,
    )
