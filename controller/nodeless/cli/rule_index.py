"""What each rule of `nodeless validate` and the webhook means, an example, and what to do: docs/rules.md.

The codes are those of `api.rule_codes`; a test holds that none is missing and that each example breaks the
rule that it stands for. What is said of an example is not written here: it is asked when the page is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from nodeless.api.rule_codes import RuleCode

POOL, CLASS, PROVISIONER, FILE = "NodePool", "EC2NodeClass", "Provisioner", ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        level: `error` or `warning`, as its faults usually are.
        meaning: What is wrong, in a sentence.
        remedy: What to do.
        example: YAML that breaks it.
        kind: The kind of object of which `example` is a part; empty where it is a whole file.
        before: The same part of the object as it is stored, for a rule about a change.
    """

    level: str
    meaning: str
    remedy: str
    example: str
    kind: str = POOL
    before: str = ""


def _error(meaning: str, remedy: str, example: str, kind: str = POOL, before: str = "") -> Rule:
    return Rule("error", meaning, remedy, example, kind, before)


def _warning(meaning: str, remedy: str, example: str, kind: str = POOL) -> Rule:
    return Rule("warning", meaning, remedy, example, kind)


def _requirement(key: str, operator: str, values: str = "") -> str:
    """The part of a NodePool with one requirement."""
    end = f", values: {values}" if values else ""
    item = f"{{key: {key}, operator: {operator}{end}}}"
    return f"spec:\n  template:\n    spec:\n      requirements:\n      - {item}\n"


RULES: Mapping[RuleCode, Rule] = {
    RuleCode.INVALID_YAML: _error(
        "A document is not valid YAML, contains a key twice, or is too deep or too large. The other documents of the file are still checked.",
        "Correct the place that the message names. If the file is a Helm template, check what `helm template` prints.",
        "kind: NodePool\nkind: NodePool\n",
        FILE,
    ),
    RuleCode.INVALID_LIST: _error(
        "The `items` of a List are not a list.",
        "Write the objects as items of a list, or as one document each.",
        "apiVersion: v1\nkind: List\nitems: {name: general}\n",
        FILE,
    ),
    RuleCode.INVALID_OBJECT: _error(
        "An object of another API, such as a Deployment or a Pod, has an invalid value. `validate` reports this for Kubernetes's own workloads. `plan` and similar commands report it for everything that they read.",
        "Correct the place that the message names. `kubectl apply --dry-run=server` shows what else the API server rejects.",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: many, template: {spec: {containers: []}}}\n",
        FILE,
    ),
    RuleCode.UNKNOWN_KIND: _error(
        "nodeless serves the API group, but not the kind or its version.",
        "Correct `apiVersion` and `kind`. `nodeless convert` converts objects from v1alpha5 and v1beta1 to v1.",
        "kind: Nodepool\n",
    ),
    RuleCode.MISSING_FIELD: _error(
        "A required field is missing.",
        "Add the field. The hint shows a usual value.",
        "spec:\n  template:\n    spec:\n      nodeClassRef: null\n",
    ),
    RuleCode.UNKNOWN_FIELD: _error(
        "The kind has no such field in this version of the API. `kubectl apply` may drop it silently.",
        "Correct the name of the field, or move the field to the place in the hint. Some fields have moved between generations of the API.",
        "spec:\n  wieght: 10\n",
    ),
    RuleCode.WRONG_TYPE: _error(
        "The type of a value does not match its field.",
        "Write the type that the message names. Numbers and booleans in labels and values need quotes.",
        _requirement("karpenter.k8s.aws/instance-cpu", "Gt", "[4]"),
    ),
    RuleCode.INVALID_FORMAT: _error(
        "A text does not have the format of its field, such as a duration, a quantity, a schedule or a percentage.",
        "Write it as the hint shows.",
        "spec:\n  disruption:\n    consolidateAfter: 30 seconds\n",
    ),
    RuleCode.UNSUPPORTED_VALUE: _error(
        "The field allows only certain values, and this is not one of them.",
        "Use a value that the hint lists.",
        "spec:\n  disruption:\n    consolidationPolicy: Always\n",
    ),
    RuleCode.OUT_OF_RANGE: _error(
        "A number or an amount is smaller or larger than the field allows.",
        "Write a value within the bounds that the message names.",
        "spec:\n  weight: 101\n",
    ),
    RuleCode.WRONG_LENGTH: _error(
        "A text or a list must not be empty but is, or is longer than the API server allows.",
        "Give as many items or characters as the message allows.",
        "spec:\n  subnetSelectorTerms: []\n",
        CLASS,
    ),
    RuleCode.INVALID_NAME: _error(
        "Kubernetes does not allow the name of the object.",
        "Use lower-case letters, digits and `-`, with a letter or digit at both ends.",
        "metadata:\n  name: General_Pool\n",
    ),
    RuleCode.INVALID_LABEL: _error(
        "Kubernetes does not allow the key or the value of a label, or of a requirement on a label.",
        "Write keys as `name` or `domain/name`. Write values with at most 63 letters, digits, `-`, `_` and `.`.",
        "metadata:\n  labels:\n    example.com/team: shop front\n",
    ),
    RuleCode.RESTRICTED_LABEL: _error(
        "The label belongs to Kubernetes, Karpenter or AWS, and users must not set it.",
        "Use a label in your own domain, such as `example.com/team`.",
        "spec:\n  template:\n    metadata:\n      labels:\n        kubernetes.io/hostname: one\n",
    ),
    RuleCode.INVALID_DEVICES: _error(
        "The annotation `nodeless.dev/devices` of a NodeOverlay does not describe devices. This overlay has no effect at all. Other overlays still take effect.",
        "Write a list with `driver` and `devices`. Describe each device as in a ResourceSlice, with `count` instead of a name ([devices](guides/devices.md#say-it-yourself)).",
        "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata:\n  name: fpgas\n  annotations:\n"
        "    nodeless.dev/devices: |\n      - driver: fpga.example.com\n        devices: [{count: 0}]\n"
        "spec: {requirements: []}\n",
        FILE,
    ),
    RuleCode.INVALID_LOST_WORK: _warning(
        "The annotation `nodeless.dev/lost-work` of a pod is not a duration, or is longer than a year. nodeless ignores it.",
        "Write how much work an interruption loses, for example `10h` ([long jobs](guides/long-jobs.md#what-lost-work-costs-on-spot)).",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: train\n  annotations:\n    nodeless.dev/lost-work: banana\n"
        "spec:\n  containers: [{name: main, image: main}]\n",
        FILE,
    ),
    RuleCode.INVALID_ANNOTATION: _error(
        "Kubernetes does not allow the key of an annotation, or the annotations together are too large.",
        "Write keys as `name` or `domain/name`. The annotations of an object can have at most 256 KiB together.",
        "metadata:\n  annotations:\n    not a key: x\n",
    ),
    RuleCode.INVALID_FINALIZER: _error(
        "The name of a finalizer is not a qualified name, or two finalizers exclude each other.",
        "Do not write finalizers yourself. Leave them to the controllers that set them.",
        "metadata:\n  finalizers: [orphan, foregroundDeletion]\n",
    ),
    RuleCode.INVALID_TAG: _error(
        "A tag has an empty key, which EC2 rejects.",
        "Give the tag a key, or remove it.",
        'spec:\n  tags:\n    "": shop\n',
        CLASS,
    ),
    RuleCode.RESERVED_TAG: _error(
        "The controller, Kubernetes or AWS sets this tag itself.",
        "Remove it.",
        "spec:\n  tags:\n    karpenter.sh/nodepool: general\n",
        CLASS,
    ),
    RuleCode.INVALID_REQUIREMENT: _error(
        "The values of a requirement do not match its operator, or there are fewer than `minValues`.",
        "Write values that match the operator. `In` needs values. `Gt`, `Lt`, `Gte` and `Lte` need one whole number. `Exists` and `DoesNotExist` take no values.",
        _requirement("karpenter.k8s.aws/instance-cpu", "Gt", '["4", "8"]'),
    ),
    RuleCode.INVALID_TAINT: _error(
        "Kubernetes does not allow the key or the value of a taint.",
        "Write the key and the value like those of a label.",
        "spec:\n  providerRef: {name: default}\n  ttlSecondsAfterEmpty: 30\n  taints:\n  - {key: not a key, effect: NoSchedule}\n",
        PROVISIONER,
    ),
    RuleCode.DUPLICATE_TAINT: _error(
        "Two taints have the same key and effect. A node can have only one such taint.",
        "Remove one of them.",
        "spec:\n  template:\n    spec:\n      taints:\n      - {key: team, value: a, effect: NoSchedule}\n      - {key: team, value: b, effect: NoSchedule}\n",
    ),
    RuleCode.INVALID_SELECTOR: _error(
        "A term of a selector is empty, combines fields that exclude each other, or has no valid ID where it needs one.",
        "Select by ID, by name or by tags. Several terms are alternatives.",
        "spec:\n  subnetSelectorTerms:\n  - id: null\n",
        CLASS,
    ),
    RuleCode.UNMATCHED_SELECTOR: _error(
        "The selector of a workload does not match the labels of its own pod template. The API server rejects the workload.",
        "Give the template the labels that the selector requires. A selector cannot be changed later.",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n"
        "  template:\n    metadata: {labels: {app: api}}\n    spec: {containers: [{name: web, image: web}]}\n",
        FILE,
    ),
    RuleCode.INVALID_KUBELET_SETTING: _error(
        "A kubelet setting names an eviction signal or a resource that does not exist, or contradicts another setting.",
        "Use a name that the hint lists. The high threshold of image garbage collection must be above the low one.",
        "spec:\n  kubelet:\n    evictionHard:\n      memory.free: 5%\n",
        CLASS,
    ),
    RuleCode.INVALID_BLOCK_DEVICE: _error(
        "A volume lacks what EC2 needs to create it, or there are two root volumes.",
        "Set `volumeSize` or `snapshotID`, and set `rootVolume` only once.",
        "spec:\n  blockDeviceMappings:\n  - deviceName: /dev/xvda\n    ebs: {volumeType: gp3}\n",
        CLASS,
    ),
    RuleCode.INVALID_NETWORK_INTERFACE: _error(
        "The first network interface is missing, or two interfaces are in the same place.",
        "Give each interface its own `networkCardIndex` and `deviceIndex`. The first interface has 0 and 0, and the type `interface`.",
        "spec:\n  networkInterfaces:\n  - {networkCardIndex: 1, deviceIndex: 1, interfaceType: interface}\n",
        CLASS,
    ),
    RuleCode.CONFLICTING_FIELDS: _error(
        "Two fields exclude each other, or exactly one of several fields is required.",
        "Keep only the field that you need.",
        "spec:\n  role: nodes\n  instanceProfile: nodes\n",
        CLASS,
    ),
    RuleCode.INCOMPLETE_FIELDS: _error(
        "A field has no meaning without another field, which is missing.",
        "Set both fields, or neither of them.",
        'spec:\n  disruption:\n    budgets:\n    - {nodes: "0", schedule: "0 9 * * mon-fri"}\n',
    ),
    RuleCode.IMMUTABLE_FIELD: _error(
        "The field cannot be changed after the object has been created. Only the webhook and the API server report this, because a file does not show the change.",
        "Create a new object, and delete this one when its workloads have moved to the new nodes.",
        "spec:\n  replicas: 2\n",
        before="spec: {}\n",
    ),
    RuleCode.NOT_CONVERTIBLE: _error(
        "The object contains something that v1 cannot express.",
        "Write it as the hint shows, or remove it.",
        "apiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: general}\nspec:\n  amiFamily: Ubuntu\n  role: nodes\n"
        "  subnetSelectorTerms: [{id: subnet-1}]\n  securityGroupSelectorTerms: [{id: sg-1}]\n",
        FILE,
    ),
    RuleCode.CHANGED_BY_CONVERSION: _warning(
        "The object behaves differently after the conversion. `nodeless convert` reports this on stderr.",
        "Check the changes before you apply the result.",
        "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: general}\nspec:\n  template:\n    metadata:\n      annotations:\n"
        '        karpenter.sh/do-not-evict: "true"\n    spec:\n      nodeClassRef: {name: general}\n      requirements: []\n',
        FILE,
    ),
    RuleCode.OLD_API_VERSION: _warning(
        "The object has the version v1beta1. Neither this controller nor a cluster that has only v1 serves it.",
        "Convert the object to v1 with `nodeless convert`.",
        "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: general}\nspec:\n  template:\n    spec:\n"
        "      nodeClassRef: {name: general}\n      requirements: []\n",
        FILE,
    ),
    RuleCode.KIND_NOT_READ: _warning(
        "nodeless does not read this kind of Karpenter or EKS. With `plan --strict`, this rule also reports every other ignored kind that may change the plan.",
        "See the hint and [compatibility](compatibility.md) for what to use instead.",
        "apiVersion: eks.amazonaws.com/v1\nkind: NodeClass\nmetadata: {name: default}\n",
        FILE,
    ),
    RuleCode.NOT_SUPPORTED: _warning(
        "The API allows the value, but this controller does not support it. It creates no nodes from the object.",
        "Write what the hint says. [Compatibility](compatibility.md) lists everything that is not supported.",
        "spec:\n  template:\n    spec:\n      nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: default}\n",
    ),
    RuleCode.CONFLICTING_OVERLAYS: _warning(
        "Two NodeOverlays with the same weight change the same offering or resource. The later one has no effect.",
        "Give them different weights, or requirements that do not overlap.",
        "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: dear}\n"
        'spec: {requirements: [], price: "2"}\n---\n'
        "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: cheap}\n"
        'spec: {requirements: [], price: "1"}\n',
        FILE,
    ),
    RuleCode.UNUSED_OVERLAY: _warning(
        "A NodeOverlay matches no instance type of any pool in the files, so it changes nothing.",
        "Correct its requirements, or remove it.",
        "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: cheap}\nspec:\n"
        "  requirements: [{key: kubernetes.io/arch, operator: In, values: [riscv64]}]\n"
        '  price: "1"\n---\n'
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec:\n  template:\n    spec:\n"
        "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: general}\n      requirements: []\n",
        FILE,
    ),
    RuleCode.UNFILLED_PLACEHOLDER: _warning(
        "A value contains a placeholder that nothing has replaced.",
        "Replace it before you apply the file, for example with `envsubst` or `helm template`.",
        "spec:\n  role: KarpenterNodeRole-${CLUSTER_NAME}\n",
        CLASS,
    ),
    RuleCode.REPEATED_NAME: _warning(
        "Two objects of the same kind have the same name, in the same or in different versions of the API. If you apply both, the later one replaces the earlier one.",
        "Rename or remove one of them.",
        "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: general}\nspec: &spec\n"
        "  subnetSelector: {team: shop}\n  securityGroupSelector: {team: shop}\n---\n"
        "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: general}\nspec:\n"
        "  subnetSelector: {team: shop}\n  securityGroupSelector: {team: shop}\n",
        FILE,
    ),
    RuleCode.NODES_NEVER_REMOVED: _warning(
        "Nothing in the Provisioner removes nodes that are no longer needed.",
        "Set `spec.ttlSecondsAfterEmpty` or `spec.consolidation.enabled`.",
        "spec:\n  ttlSecondsAfterEmpty: null\n",
        PROVISIONER,
    ),
    RuleCode.UNKNOWN_LABEL_KEY: _warning(
        "The key of a requirement looks like a well-known key, but is not one. It does not select instances. Nodes only get it as a label.",
        "Write the key that the hint names.",
        _requirement("node.k8s.aws/instance-type", "In", "[m5.large]"),
    ),
    RuleCode.UNKNOWN_LABEL_VALUE: _warning(
        "A well-known label has no such value.",
        "Write the value that the hint names.",
        _requirement("karpenter.sh/capacity-type", "In", "[spot, on-demnd]"),
    ),
    RuleCode.IGNORED_VALUES: _warning(
        "The values of a requirement have no effect with its operator, or a requirement has no values although it should.",
        "Remove the values, or use another operator.",
        _requirement("example.com/team", "Exists", "[shop]"),
    ),
    RuleCode.CONTRADICTING_REQUIREMENTS: _warning(
        "Two requirements on the same label exclude each other. No node can meet both.",
        "Remove one of them.",
        "spec:\n  template:\n    spec:\n      requirements:\n"
        "      - {key: kubernetes.io/arch, operator: In, values: [arm64]}\n"
        "      - {key: kubernetes.io/arch, operator: In, values: [amd64]}\n",
    ),
    RuleCode.NO_INSTANCE_TYPES: _warning(
        "No instance type of the bundled catalog meets all requirements, so nodeless creates no nodes.",
        "Relax the requirement that the message names.",
        _requirement("karpenter.k8s.aws/instance-cpu", "Gt", '["5000"]'),
    ),
    RuleCode.UNREACHABLE_VALUE: _warning(
        "No instance type has this value of a requirement and also meets the other requirements.",
        "Correct or remove the value. The warning also appears for instance types that are newer than the bundled catalog.",
        _requirement(
            "node.kubernetes.io/instance-type",
            "In",
            "[m5.large, m55.large, c5.large, m6i.large, r5.large, t3.large]",
        ),
    ),
    RuleCode.UNREACHABLE_MIN_VALUES: _warning(
        "`minValues` is higher than the number of values that instance types have, so nodeless creates no nodes.",
        "Lower it, or relax the other requirements.",
        "spec:\n  template:\n    spec:\n      requirements:\n"
        "      - {key: karpenter.k8s.aws/instance-family, operator: Exists, minValues: 50}\n"
        "      - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, m6i]}\n",
    ),
    RuleCode.FEW_SPOT_TYPES: _warning(
        "The requirements allow only a few instance types for spot. Interruptions are more frequent, and prices are higher.",
        "Allow at least five instance types.",
        _requirement("node.kubernetes.io/instance-type", "In", "[m5.large]")
        + "      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}\n",
    ),
    RuleCode.OVERLAPPING_POOLS: _warning(
        "The same pods can go to two pools with the same weight. Nothing decides which of them creates the node.",
        "Give one of them a higher weight, or separate them with labels or taints.",
        "".join(
            f"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}}}\nspec:\n  template:\n    spec:\n"
            "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: general}\n      requirements: []\n---\n"
            for name in ("one", "two")
        ),
        FILE,
    ),
    RuleCode.OTHER_AUTOSCALER: _warning(
        "Cluster Autoscaler, Karpenter or EKS Auto Mode is among the objects, and can also serve pods of this pool. Both launch nodes for the same pods.",
        "Make sure that only one autoscaler serves each pod. Use taints to separate the pools or node groups that the message names, fix the size of the other autoscaler's groups, or scale the other autoscaler to 0.",
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec:\n  template:\n    spec:\n"
        "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: general}\n      requirements: []\n---\n"
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: cluster-autoscaler, namespace: kube-system}\nspec:\n"
        "  selector: {matchLabels: {app: cluster-autoscaler}}\n  template:\n    metadata: {labels: {app: cluster-autoscaler}}\n"
        "    spec:\n      containers:\n      - name: cluster-autoscaler\n"
        "        image: registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0\n"
        "        command: [./cluster-autoscaler, '--nodes=1:10:web']\n",
        FILE,
    ),
    RuleCode.NEGATIVE_LIMIT: _warning(
        "A limit is negative, so nodeless never launches a node.",
        "Raise it.",
        'spec:\n  limits: {cpu: "-1"}\n',
    ),
    RuleCode.UNKNOWN_RESOURCE: _warning(
        "A limit names a resource that no node has, so it limits nothing.",
        "Write the resource that the hint names.",
        "spec:\n  limits: {cpus: 10}\n",
    ),
    RuleCode.TOO_MANY_TAGS: _warning(
        "The object has too many tags. EC2 allows 50 tags on a resource, and the controller adds some of its own.",
        "Remove some tags.",
        "spec:\n  tags: {" + ", ".join(f"tag-{number}: x" for number in range(51)) + "}\n",
        CLASS,
    ),
    RuleCode.COMMA_IN_TAG: _warning(
        "The value of a tag in a selector contains a comma. Unlike in v1alpha5, the comma does not separate values here.",
        "Write a term for each value.",
        'spec:\n  subnetSelectorTerms:\n  - tags: {Name: "a,b"}\n',
        CLASS,
    ),
    RuleCode.COMBINED_TERM: _warning(
        "A term selects by an ID or a name and by something else. Both must match.",
        "If either should be enough, write two separate terms.",
        "spec:\n  securityGroupSelectorTerms:\n  - {name: nodes, tags: {team: shop}}\n",
        CLASS,
    ),
    RuleCode.EMPTY_SELECTOR: _warning(
        "A selector is empty, so it selects nothing.",
        "Select by tags, or remove it.",
        "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: general}\nspec:\n"
        "  subnetSelector: {}\n  securityGroupSelector: {team: shop}\n",
        FILE,
    ),
    RuleCode.DURATION_TOO_LONG: _warning(
        "A duration is longer than the longest possible duration, which applies instead.",
        "If you want no end, write `Never`.",
        "spec:\n  template:\n    spec:\n      expireAfter: 9999999h\n",
    ),
    RuleCode.INVALID_ADDRESS: _warning(
        "The address of a DNS server is not an IP address, so pods cannot resolve names.",
        "Write an IP address, such as `172.20.0.10`.",
        "spec:\n  kubelet:\n    clusterDNS: [kube-dns]\n",
        CLASS,
    ),
    RuleCode.IGNORED_SETTING: _warning(
        "The setting no longer has any effect.",
        "Remove it.",
        "spec:\n  kubeletConfiguration: {containerRuntime: dockerd}\n",
        PROVISIONER,
    ),
    RuleCode.VOLUME_SETTING: _warning(
        "EC2 would reject this value for this type of volume.",
        "Write a value within the bounds that the message names, or remove it; add one that the type needs.",
        "spec:\n  blockDeviceMappings:\n  - deviceName: /dev/xvda\n    ebs: {volumeType: gp2, volumeSize: 50Gi, throughput: 500}\n",
        CLASS,
    ),
}
