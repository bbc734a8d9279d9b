"""Plans for random clusters with rules between pods, checked against kube-scheduler's filters."""

from hypothesis import HealthCheck, given, settings

from nodeless.scheduling import Policy, solve
from tests.scheduling.scheduler import Cluster, binding_order
from tests.scheduling.topology_worlds import (
    TYPES,
    WORLDS,
    affordable,
    cluster_of,
    distinct,
    shapes,
    undecided,
)


def plan(seen):
    return solve(seen, dict.fromkeys(seen.pools, TYPES), Policy(time_box=0))


@settings(deadline=None, max_examples=250, suppress_health_check=[HealthCheck.too_slow])
@given(WORLDS)
def test_the_scheduler_can_bind_every_planned_pod_and_no_refused_pod_fits_anywhere(seen):
    """Both on the same plans: to make them is what takes the time."""
    result = plan(seen)
    for which in (-1, 0):
        cluster, wanted = cluster_of(seen, result, which)
        assert binding_order(cluster, wanted) is not None, {
            name: {pod.key: cluster.obstacle(pod, cluster.hosts[name]) for pod in some}
            for name, some in wanted.items()
        }
    no_refused_pod_fits_on_any_node_that_is_there_or_could_be_made(seen, result, cluster)


def no_refused_pod_fits_on_any_node_that_is_there_or_could_be_made(seen, result, cluster):
    candidates = list(shapes(seen))
    world = Cluster(cluster.hosts, tuple(host for _, _, host in candidates))
    for pod in distinct(seen, [refusal.pod for refusal in result.refusals]):
        if undecided(pod, result):
            continue
        for host in cluster.hosts.values():
            assert world.obstacle(pod, host) is not None, f"{pod.key} fits on {host.name}"
        for own, kind, host in candidates:
            if affordable(seen, result, own, kind):
                assert world.obstacle(pod, host) is not None, f"a {host.name} would take {pod.key}"
