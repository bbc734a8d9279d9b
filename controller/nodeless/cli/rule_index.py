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
        "A document is no YAML, gives a key twice, or is too deep or too large. The other documents of the file are checked all the same.",
        "Correct the place that the message names. If the file is a Helm template, check what `helm template` prints.",
        "kind: NodePool\nkind: NodePool\n",
        FILE,
    ),
    RuleCode.INVALID_LIST: _error(
        "The `items` of a List are no list.",
        "Write the objects as items of a list, or one document each.",
        "apiVersion: v1\nkind: List\nitems: {name: general}\n",
        FILE,
    ),
    RuleCode.INVALID_OBJECT: _error(
        "An object of another API, as a Deployment or a Pod, has a value that it cannot have. `validate` says it of Kubernetes' own workloads, `plan` and the commands like it of whatever they read.",
        "Correct the place that the message names. `kubectl apply --dry-run=server` says what else the API server refuses.",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: many, template: {spec: {containers: []}}}\n",
        FILE,
    ),
    RuleCode.UNKNOWN_KIND: _error(
        "The API group is one that nodeless serves, and the kind, or its version, is not.",
        "Correct `apiVersion` and `kind`. `nodeless convert` makes v1 of objects of v1alpha5 and v1beta1.",
        "kind: Nodepool\n",
    ),
    RuleCode.MISSING_FIELD: _error(
        "A field that is required is not there.",
        "Add it. The hint says what is usual.",
        "spec:\n  template:\n    spec:\n      nodeClassRef: null\n",
    ),
    RuleCode.UNKNOWN_FIELD: _error(
        "The kind has no such field in this version of the API. `kubectl apply` may drop it without a word.",
        "Correct its name, or move it where the hint says: fields have moved between generations of the API.",
        "spec:\n  wieght: 10\n",
    ),
    RuleCode.WRONG_TYPE: _error(
        "A value has another type than its field.",
        "Write the type that the message names. Numbers and booleans in labels and values need quotes.",
        _requirement("karpenter.k8s.aws/instance-cpu", "Gt", "[4]"),
    ),
    RuleCode.INVALID_FORMAT: _error(
        "A text has not the form of its field: a duration, a quantity, a schedule, a percentage or the like.",
        "Write it as the hint shows.",
        "spec:\n  disruption:\n    consolidateAfter: 30 seconds\n",
    ),
    RuleCode.UNSUPPORTED_VALUE: _error(
        "The field takes one of a few values, and this is none of them.",
        "Use one that the hint lists.",
        "spec:\n  disruption:\n    consolidationPolicy: Always\n",
    ),
    RuleCode.OUT_OF_RANGE: _error(
        "A number or an amount is smaller or larger than the field takes.",
        "Write one within the bounds that the message names.",
        "spec:\n  weight: 101\n",
    ),
    RuleCode.WRONG_LENGTH: _error(
        "A text or a list is empty where something is needed, or longer than the API server takes.",
        "Give as many items or characters as the message allows.",
        "spec:\n  subnetSelectorTerms: []\n",
        CLASS,
    ),
    RuleCode.INVALID_NAME: _error(
        "The name of the object is none that Kubernetes takes.",
        "Use lower-case letters, digits and `-`, with a letter or digit at both ends.",
        "metadata:\n  name: General_Pool\n",
    ),
    RuleCode.INVALID_LABEL: _error(
        "The key or the value of a label, or of a requirement on one, is none that Kubernetes takes.",
        "Keys are `name` or `domain/name`; values have at most 63 letters, digits, `-`, `_` and `.`.",
        "metadata:\n  labels:\n    example.com/team: shop front\n",
    ),
    RuleCode.RESTRICTED_LABEL: _error(
        "The label belongs to Kubernetes, Karpenter or AWS, and users may not set it.",
        "Use a label in a domain of your own, as `example.com/team`.",
        "spec:\n  template:\n    metadata:\n      labels:\n        kubernetes.io/hostname: one\n",
    ),
    RuleCode.INVALID_DEVICES: _error(
        "The annotation `nodeless.dev/devices` of a NodeOverlay does not describe devices. The whole overlay has no effect; others count.",
        "Write a list with `driver` and `devices`, each device in the words of a ResourceSlice, with `count` in place of a name ([devices](guides/devices.md#say-it-yourself)).",
        "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata:\n  name: fpgas\n  annotations:\n"
        "    nodeless.dev/devices: |\n      - driver: fpga.example.com\n        devices: [{count: 0}]\n"
        "spec: {requirements: []}\n",
        FILE,
    ),
    RuleCode.INVALID_LOST_WORK: _warning(
        "The annotation `nodeless.dev/lost-work` of pods is no duration, or is longer than a year. It is ignored.",
        "Write how much work an interruption loses, as `10h` ([long jobs](guides/long-jobs.md#what-lost-work-costs-on-spot)).",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: train\n  annotations:\n    nodeless.dev/lost-work: banana\n"
        "spec:\n  containers: [{name: main, image: main}]\n",
        FILE,
    ),
    RuleCode.INVALID_ANNOTATION: _error(
        "The key of an annotation is none that Kubernetes takes, or annotations are too large together.",
        "Write keys as `name` or `domain/name`. All annotations of an object have 256 KiB.",
        "metadata:\n  annotations:\n    not a key: x\n",
    ),
    RuleCode.INVALID_FINALIZER: _error(
        "A finalizer has no qualified name, or two of them exclude each other.",
        "Leave finalizers to the controllers that set them.",
        "metadata:\n  finalizers: [orphan, foregroundDeletion]\n",
    ),
    RuleCode.INVALID_TAG: _error(
        "A tag has an empty key, which EC2 refuses.",
        "Name the tag, or leave it out.",
        'spec:\n  tags:\n    "": shop\n',
        CLASS,
    ),
    RuleCode.RESERVED_TAG: _error(
        "The tag is one that the controller, Kubernetes or AWS sets by itself.",
        "Leave it out.",
        "spec:\n  tags:\n    karpenter.sh/nodepool: general\n",
        CLASS,
    ),
    RuleCode.INVALID_REQUIREMENT: _error(
        "The values of a requirement do not go with its operator, or are fewer than `minValues`.",
        "`In` needs values; `Gt`, `Lt`, `Gte` and `Lte` need one whole number; `Exists` and `DoesNotExist` need none.",
        _requirement("karpenter.k8s.aws/instance-cpu", "Gt", '["4", "8"]'),
    ),
    RuleCode.INVALID_TAINT: _error(
        "The key or the value of a taint is none that Kubernetes takes.",
        "Write them like those of a label.",
        "spec:\n  providerRef: {name: default}\n  ttlSecondsAfterEmpty: 30\n  taints:\n  - {key: not a key, effect: NoSchedule}\n",
        PROVISIONER,
    ),
    RuleCode.DUPLICATE_TAINT: _error(
        "Two taints have the same key and effect, of which a node can have one.",
        "Leave one of them out.",
        "spec:\n  template:\n    spec:\n      taints:\n      - {key: team, value: a, effect: NoSchedule}\n      - {key: team, value: b, effect: NoSchedule}\n",
    ),
    RuleCode.INVALID_SELECTOR: _error(
        "A term of a selector is empty, combines what cannot be combined, or holds no id where one is meant.",
        "Select by id, by name, or by tags; several terms are alternatives.",
        "spec:\n  subnetSelectorTerms:\n  - id: null\n",
        CLASS,
    ),
    RuleCode.UNMATCHED_SELECTOR: _error(
        "The selector of a workload does not match the labels of its own pod template: the API server refuses it.",
        "Give the template the labels that the selector asks for. A selector cannot be changed later.",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n"
        "  template:\n    metadata: {labels: {app: api}}\n    spec: {containers: [{name: web, image: web}]}\n",
        FILE,
    ),
    RuleCode.INVALID_KUBELET_SETTING: _error(
        "A setting of the kubelet names an eviction signal or a resource that there is not, or contradicts another one.",
        "Use a name that the hint lists; the high threshold of image collection is above the low one.",
        "spec:\n  kubelet:\n    evictionHard:\n      memory.free: 5%\n",
        CLASS,
    ),
    RuleCode.INVALID_BLOCK_DEVICE: _error(
        "A volume lacks what EC2 needs to make it, or there are two root volumes.",
        "Give `volumeSize` or `snapshotID`, and `rootVolume` once.",
        "spec:\n  blockDeviceMappings:\n  - deviceName: /dev/xvda\n    ebs: {volumeType: gp3}\n",
        CLASS,
    ),
    RuleCode.INVALID_NETWORK_INTERFACE: _error(
        "The network interfaces lack the first one, or two of them have one place.",
        "Give each its own `networkCardIndex` and `deviceIndex`; the first one has 0 and 0, and the type `interface`.",
        "spec:\n  networkInterfaces:\n  - {networkCardIndex: 1, deviceIndex: 1, interfaceType: interface}\n",
        CLASS,
    ),
    RuleCode.CONFLICTING_FIELDS: _error(
        "Two fields exclude each other, or exactly one of several is needed.",
        "Keep the one that you mean.",
        "spec:\n  role: nodes\n  instanceProfile: nodes\n",
        CLASS,
    ),
    RuleCode.INCOMPLETE_FIELDS: _error(
        "A field has no meaning without another one, which is not there.",
        "Give both, or none.",
        'spec:\n  disruption:\n    budgets:\n    - {nodes: "0", schedule: "0 9 * * mon-fri"}\n',
    ),
    RuleCode.IMMUTABLE_FIELD: _error(
        "The field cannot be changed once the object is there. The webhook and the API server say this; a file alone cannot show it.",
        "Make a new object, and delete this one when its nodes have moved.",
        "spec:\n  replicas: 2\n",
        before="spec: {}\n",
    ),
    RuleCode.NOT_CONVERTIBLE: _error(
        "The object says something that v1 has no words for.",
        "Say it as the hint shows, or leave it out.",
        "apiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: general}\nspec:\n  amiFamily: Ubuntu\n  role: nodes\n"
        "  subnetSelectorTerms: [{id: subnet-1}]\n  securityGroupSelectorTerms: [{id: sg-1}]\n",
        FILE,
    ),
    RuleCode.CHANGED_BY_CONVERSION: _warning(
        "The object behaves differently once it is converted. `nodeless convert` notes it on stderr.",
        "Read what changes before you apply the result.",
        "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: general}\nspec:\n  template:\n    metadata:\n      annotations:\n"
        '        karpenter.sh/do-not-evict: "true"\n    spec:\n      nodeClassRef: {name: general}\n      requirements: []\n',
        FILE,
    ),
    RuleCode.OLD_API_VERSION: _warning(
        "The object is of v1beta1, which neither this controller nor a cluster with v1 alone serves.",
        "`nodeless convert` makes v1 of it.",
        "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: general}\nspec:\n  template:\n    spec:\n"
        "      nodeClassRef: {name: general}\n      requirements: []\n",
        FILE,
    ),
    RuleCode.KIND_NOT_READ: _warning(
        "The object is of a kind of Karpenter or EKS that nodeless does not read; with `plan --strict`, of any kind that may change the plan and is left out.",
        "The hint, and [compatibility](compatibility.md), say what takes its place.",
        "apiVersion: eks.amazonaws.com/v1\nkind: NodeClass\nmetadata: {name: default}\n",
        FILE,
    ),
    RuleCode.NOT_SUPPORTED: _warning(
        "The API knows the value and this controller cannot act on it: no node is made from the object.",
        "Write what the hint says; [compatibility](compatibility.md) lists all of it.",
        "spec:\n  template:\n    spec:\n      nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: default}\n",
    ),
    RuleCode.CONFLICTING_OVERLAYS: _warning(
        "Two NodeOverlays of one weight say something of the same offering or resource: the later one has no effect.",
        "Give them different weights, or requirements that do not overlap.",
        "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: dear}\n"
        'spec: {requirements: [], price: "2"}\n---\n'
        "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: cheap}\n"
        'spec: {requirements: [], price: "1"}\n',
        FILE,
    ),
    RuleCode.UNUSED_OVERLAY: _warning(
        "A NodeOverlay means no instance type of any pool in the files: it changes nothing.",
        "Correct its requirements, or leave it out.",
        "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: cheap}\nspec:\n"
        "  requirements: [{key: kubernetes.io/arch, operator: In, values: [riscv64]}]\n"
        '  price: "1"\n---\n'
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec:\n  template:\n    spec:\n"
        "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: general}\n      requirements: []\n",
        FILE,
    ),
    RuleCode.UNFILLED_PLACEHOLDER: _warning(
        "A value is a placeholder that somebody has to fill in.",
        "Substitute it before the file is applied, as `envsubst` and `helm template` do.",
        "spec:\n  role: KarpenterNodeRole-${CLUSTER_NAME}\n",
        CLASS,
    ),
    RuleCode.REPEATED_NAME: _warning(
        "Two objects of one kind have one name, in whichever versions of the API: applied in turn, the later replaces the earlier.",
        "Rename one of them, or leave one out.",
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
        "The key of a requirement resembles a well-known one and is none: it chooses no instances, and nodes get it as a label.",
        "Write the key that the hint names.",
        _requirement("node.k8s.aws/instance-type", "In", "[m5.large]"),
    ),
    RuleCode.UNKNOWN_LABEL_VALUE: _warning(
        "A well-known label has no such value.",
        "Write the value that the hint names.",
        _requirement("karpenter.sh/capacity-type", "In", "[spot, on-demnd]"),
    ),
    RuleCode.IGNORED_VALUES: _warning(
        "The values of a requirement have no effect with its operator, or there are none where some are meant.",
        "Leave the values out, or use another operator.",
        _requirement("example.com/team", "Exists", "[shop]"),
    ),
    RuleCode.CONTRADICTING_REQUIREMENTS: _warning(
        "Two requirements on one label exclude each other: no node can meet both.",
        "Leave one of them out.",
        "spec:\n  template:\n    spec:\n      requirements:\n"
        "      - {key: kubernetes.io/arch, operator: In, values: [arm64]}\n"
        "      - {key: kubernetes.io/arch, operator: In, values: [amd64]}\n",
    ),
    RuleCode.NO_INSTANCE_TYPES: _warning(
        "No instance type of the bundled catalog meets all requirements: no node is made.",
        "Loosen the requirement that the message names.",
        _requirement("karpenter.k8s.aws/instance-cpu", "Gt", '["5000"]'),
    ),
    RuleCode.UNREACHABLE_VALUE: _warning(
        "A value of a requirement has no instance type beside the other requirements.",
        "Correct or remove it. A type that is newer than the bundled catalog is warned of as well.",
        _requirement(
            "node.kubernetes.io/instance-type",
            "In",
            "[m5.large, m55.large, c5.large, m6i.large, r5.large, t3.large]",
        ),
    ),
    RuleCode.UNREACHABLE_MIN_VALUES: _warning(
        "`minValues` is more than the values that instance types have: no node is made.",
        "Lower it, or loosen the other requirements.",
        "spec:\n  template:\n    spec:\n      requirements:\n"
        "      - {key: karpenter.k8s.aws/instance-family, operator: Exists, minValues: 50}\n"
        "      - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, m6i]}\n",
    ),
    RuleCode.FEW_SPOT_TYPES: _warning(
        "The requirements leave few instance types for spot: interruptions are more frequent, and prices higher.",
        "Allow five types or more.",
        _requirement("node.kubernetes.io/instance-type", "In", "[m5.large]")
        + "      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}\n",
    ),
    RuleCode.OVERLAPPING_POOLS: _warning(
        "The same pods may go to two pools of one weight: which of them makes the node is nobody's decision.",
        "Give one of them a higher weight, or set them apart by labels or taints.",
        "".join(
            f"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}}}\nspec:\n  template:\n    spec:\n"
            "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: general}\n      requirements: []\n---\n"
            for name in ("one", "two")
        ),
        FILE,
    ),
    RuleCode.OTHER_AUTOSCALER: _warning(
        "Cluster Autoscaler, Karpenter or EKS Auto Mode is among the objects, and can take pods of the pool, too: both launch for the same pods.",
        "Let one autoscaler serve each pod: set the pools or groups that the message names apart by taints, hold the groups of the other one at one size, or scale it to 0.",
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
        "A limit is below zero: nothing will ever be launched.",
        "Raise it.",
        'spec:\n  limits: {cpu: "-1"}\n',
    ),
    RuleCode.UNKNOWN_RESOURCE: _warning(
        "A limit names a resource that no node has: it limits nothing.",
        "Write the resource that the hint names.",
        "spec:\n  limits: {cpus: 10}\n",
    ),
    RuleCode.TOO_MANY_TAGS: _warning(
        "EC2 allows 50 tags on a resource, some of which are the controller's own.",
        "Leave some out.",
        "spec:\n  tags: {" + ", ".join(f"tag-{number}: x" for number in range(51)) + "}\n",
        CLASS,
    ),
    RuleCode.COMMA_IN_TAG: _warning(
        "The value of a tag in a selector holds a comma, which separates no values here as it did in v1alpha5.",
        "Write a term for each value.",
        'spec:\n  subnetSelectorTerms:\n  - tags: {Name: "a,b"}\n',
        CLASS,
    ),
    RuleCode.COMBINED_TERM: _warning(
        "A term selects by an id or a name and by something else: both must match.",
        "Make a term of its own of it, if either is meant.",
        "spec:\n  securityGroupSelectorTerms:\n  - {name: nodes, tags: {team: shop}}\n",
        CLASS,
    ),
    RuleCode.EMPTY_SELECTOR: _warning(
        "A selector is empty, and selects nothing.",
        "Select by tags, or leave it out.",
        "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: general}\nspec:\n"
        "  subnetSelector: {}\n  securityGroupSelector: {team: shop}\n",
        FILE,
    ),
    RuleCode.DURATION_TOO_LONG: _warning(
        "A duration is longer than its type holds, and counts as the longest.",
        "Write `Never` where no end is meant.",
        "spec:\n  template:\n    spec:\n      expireAfter: 9999999h\n",
    ),
    RuleCode.INVALID_ADDRESS: _warning(
        "An address of a DNS server is no IP address: pods will resolve no names.",
        "Write an IP address, as `172.20.0.10`.",
        "spec:\n  kubelet:\n    clusterDNS: [kube-dns]\n",
        CLASS,
    ),
    RuleCode.IGNORED_SETTING: _warning(
        "The setting has no effect any more.",
        "Leave it out.",
        "spec:\n  kubeletConfiguration: {containerRuntime: dockerd}\n",
        PROVISIONER,
    ),
    RuleCode.VOLUME_SETTING: _warning(
        "EC2 would refuse this figure for a volume of this type.",
        "Write one within the bounds that the message names, or leave it out.",
        "spec:\n  blockDeviceMappings:\n  - deviceName: /dev/xvda\n    ebs: {volumeType: gp2, volumeSize: 50Gi, throughput: 500}\n",
        CLASS,
    ),
}
