"""Given the JSON of storage objects, does the model say what Kubernetes means?"""

import json

from nodeless.kube.decoding import decode_pod
from nodeless.kube.storage import (
    EBS_DRIVER,
    decode_csi_node,
    decode_storage_class,
    decode_volume,
    decode_volume_claim,
)
from nodeless.model.labels import HOSTNAME, ZONE
from nodeless.model.requirements import Requirement


def encoded(metadata, **parts):
    return json.dumps({"metadata": {"name": "it", **metadata}, **parts}).encode()


def zone(*names):
    return Requirement.of(ZONE, "In", names)


def volume(labels=None, **spec):
    return decode_volume(encoded({"labels": labels or {}}, spec=spec))


def reached_in(*terms):
    return {
        "required": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}
                for key, values in terms
            ]
        }
    }


def test_a_claim_is_bound_once_the_control_plane_says_so():
    spec = {"volumeName": "pv-1", "storageClassName": "gp3"}
    naming = decode_volume_claim(encoded({"namespace": "shop"}, spec=spec))
    assert (naming.key, naming.storage_class, naming.volume_name, naming.bound) == (
        "shop/it",
        "gp3",
        "pv-1",
        False,
    )
    annotations = {"pv.kubernetes.io/bind-completed": "yes"}
    assert decode_volume_claim(encoded({"annotations": annotations}, spec=spec)).bound


def test_a_claim_is_one_pods_where_its_access_modes_say_so():
    def made(**spec):
        return decode_volume_claim(encoded({}, spec=spec)).one_pod

    assert made(accessModes=["ReadWriteOncePod"])
    assert not made(accessModes=["ReadWriteOnce"])
    assert not made(accessModes=None)
    assert not made()


def test_no_class_and_the_empty_class_are_told_apart():
    assert decode_volume_claim(encoded({}, spec={})).storage_class is None
    assert decode_volume_claim(encoded({}, spec={"storageClassName": ""})).storage_class == ""


def test_the_ebs_driver_names_zones_by_a_key_of_its_own():
    affinity = reached_in(("topology.ebs.csi.aws.com/zone", ["us-east-1a"]))
    made = volume(csi={"driver": EBS_DRIVER}, nodeAffinity=affinity)
    assert made.driver == EBS_DRIVER
    assert [term.expressions for term in made.terms] == [(zone("us-east-1a"),)]


def test_a_volume_may_be_reached_in_one_place_or_another():
    affinity = reached_in((ZONE, ["a"]), (ZONE, ["b"]))
    assert [term.expressions for term in volume(nodeAffinity=affinity).terms] == [(zone("a"),), (zone("b"),)]


def test_a_volume_of_the_old_kind_goes_by_the_driver_that_took_its_place():
    made = volume(
        {"failure-domain.beta.kubernetes.io/zone": "a__b"}, awsElasticBlockStore={"volumeID": "vol-1"}
    )
    assert made.driver == EBS_DRIVER
    assert [term.expressions for term in made.terms] == [(zone("a", "b"),)]
    old = decode_storage_class(encoded({}, provisioner="kubernetes.io/aws-ebs"))
    assert old.driver == EBS_DRIVER


def test_the_host_of_a_local_volume_is_not_asked_for():
    for kind in ("local", "hostPath"):
        made = volume(**{kind: {"path": "/data"}}, nodeAffinity=reached_in((HOSTNAME, ["gone"])))
        assert [term.expressions for term in made.terms] == [()]
    kept = volume(csi={"driver": "x"}, nodeAffinity=reached_in((HOSTNAME, ["here"])))
    assert kept.terms[0].expressions


def test_a_class_says_where_and_when_its_volumes_are_made():
    made = decode_storage_class(
        encoded(
            {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            provisioner=EBS_DRIVER,
            volumeBindingMode="WaitForFirstConsumer",
            allowedTopologies=[
                {"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": ["a", "b"]}]}
            ],
        )
    )
    assert made.default
    assert made.binding_mode == "WaitForFirstConsumer"
    assert made.terms[0].expressions == (zone("a", "b"),)
    assert decode_storage_class(encoded({})).binding_mode == "Immediate"


def test_a_driver_without_a_count_has_no_limit():
    drivers = [
        {"name": "a", "allocatable": {"count": 25}},
        {"name": "b", "allocatable": {}},
        {"name": "c", "allocatable": None},
    ]
    assert decode_csi_node(encoded({}, spec={"drivers": drivers})).limits == (
        ("a", 25),
        ("b", None),
        ("c", None),
    )
    assert decode_csi_node(encoded({}, spec={"drivers": None})).limits == ()


def test_an_ephemeral_volume_names_the_class_of_its_claim():
    source = {"volumeClaimTemplate": {"spec": {"storageClassName": "gp3"}}}
    spec = {"containers": [], "volumes": [{"name": "scratch", "ephemeral": source}]}
    pod = decode_pod(json.dumps({"metadata": {"name": "web"}, "spec": spec}).encode())
    assert pod.shape.ephemeral_volumes == (("scratch", "gp3"),)
