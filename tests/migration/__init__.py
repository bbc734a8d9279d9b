"""`nodeless migrate`, run as a user runs it, on answers in the shapes of the AWS API."""
