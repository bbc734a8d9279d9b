"""Faults of a node class that no selector tells: user data that cannot be merged, refused tags. Pure.

They are looked for before anything is launched, so that the node class's condition names them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodeless.launch.kubelet_arguments import Bootstrap, Cluster
from nodeless.launch.user_data import UserDataError, UserDataTooLongError, user_data
from nodeless.model.pools import NodeClass

#: EC2's limits: tags of a resource, characters of a key and of a value.
MAX_TAGS, MAX_KEY, MAX_VALUE = 50, 128, 256
#: Tags that the controller adds itself, at most.
OWN_TAGS = 8
_RESERVED = "aws:"
_HINT = "; hint: "


@dataclass(frozen=True, slots=True)
class Fault:
    """`field` as a member of the spec."""

    field: str
    message: str
    hint: str
    reason: str = "NotFound"
    """As the condition has it."""


def node_class_faults(
    node_class: NodeClass, cluster: Cluster, settings: Mapping[str, str]
) -> tuple[Fault, ...]:
    """Everything that is wrong; `settings` are the tags that the controller's settings give everything."""
    if node_class.launch_template is not None:
        return tuple(_tag_faults(node_class, settings))
    return (*_user_data_faults(node_class, cluster), *_tag_faults(node_class, settings))


def _user_data_faults(node_class: NodeClass, cluster: Cluster) -> Iterator[Fault]:
    if not node_class.user_data:
        return
    try:
        user_data(node_class.ami_family, Bootstrap(cluster, {}, (), custom=node_class.user_data))
    except UserDataError as error:
        message, _, hint = str(error).partition(_HINT)
        reason = "UserDataSizeLimitExceeded" if isinstance(error, UserDataTooLongError) else "UserDataInvalid"
        yield Fault("userData", message, f"correct spec.userData: {hint}", reason)


def _tag_faults(node_class: NodeClass, settings: Mapping[str, str]) -> Iterator[Fault]:
    tags = {**settings, **dict(node_class.tags)}
    for key, value in sorted(tags.items()):
        where = "spec.tags" if key in dict(node_class.tags) else "setting aws.tags"
        if key.lower().startswith(_RESERVED):
            yield _tag_fault(f"tag {key} of {where} has AWS's own prefix", f"rename {key}")
        if len(key) > MAX_KEY:
            yield _tag_fault(f"tag {key[:20]}... of {where} has {len(key)} characters", f"at most {MAX_KEY}")
        if len(value) > MAX_VALUE:
            yield _tag_fault(
                f"value of tag {key} of {where} has {len(value)} characters", f"at most {MAX_VALUE}"
            )
    if len(tags) > MAX_TAGS - OWN_TAGS:
        yield _tag_fault(
            f"{len(tags)} tags and those of the controller are more than the {MAX_TAGS} that EC2 takes",
            f"give at most {MAX_TAGS - OWN_TAGS} in spec.tags and setting aws.tags together",
        )


def _tag_fault(message: str, hint: str) -> Fault:
    return Fault("tags", message, hint, "TagValidationFailed")
