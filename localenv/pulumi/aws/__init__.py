"""The package `aws` of Pulumi, carried out by boto3 on the local AWS."""
