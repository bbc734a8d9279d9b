"""What the cloud is asked on behalf of node classes: dry runs, instance profiles."""
