"""The local AWS: moto's server in a child process, with what moto leaves out, behind the same endpoints.

`LocalAws.start(directory)` starts it; any AWS SDK reaches it through `LocalAws.environment()`. Requests
pass `gateway`, which asks `handlers` for an answer of our own and lets moto answer the rest. moto's private
names are touched in `moto_internals` alone.

What moto lacks of AWS stands in `upstream`, one module a gap, in the shape of patches that could go to moto.
What is put right here, and in which module:

* every call: unknown access keys are refused, calls are recorded, faults can be switched on, unknown
  actions and filters get AWS's errors, DryRun (`gateway`, `credentials`, `control`);
* DescribeInstances, DescribeInstanceTypes and DescribeInstanceTypeOfferings in milliseconds
  (`moto_instances`, `ec2_describe`, `instance_types`);
* DescribeSpotPriceHistory and pricing.GetProducts from a price book (`price_book`, `pricing`);
* ssm.GetParameter and GetParameters: the public parameters of node images, leading to images that exist
  (`images`);
* all of EKS: the cluster's real endpoint, CA and issuer, its security group, add-ons, access entries, Pod
  Identity, Fargate profiles with their checks (`eks_clusters`, `eks_access`, `eks_addons`, `eks_fargate`);
* sts.AssumeRoleWithWebIdentity: the token and the role's trust are verified; GetCallerIdentity
  (`web_identity`).

Warnings about instances (spot interruption and others) are sent to the event bus on demand, and an
interrupted spot instance goes (`interruptions`).

What still differs from AWS:

* a known key may do everything but what its role's inline policies deny on every resource; signatures are
  not checked, only their access key;
* unless the faults of `control` say otherwise, everything is consistent at once and there are no quotas;
* there is no instance metadata service; state-change events are those of interruptions and of StopInstances
  alone;
* instances run at once and terminate at once; clusters, profiles and add-ons are ACTIVE at once;
* spot prices are synthetic and constant; GetProducts knows Linux compute only;
* fleets of type `maintain` and `request` and EKS node groups are not served;
* retired instance types (p2, p3, g3, g4ad, f1, dl1) have no records.
"""

from localenv.aws.local_aws import LocalAws

__all__ = ["LocalAws"]
