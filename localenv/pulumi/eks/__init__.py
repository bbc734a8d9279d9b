"""The component `eks:index:Cluster` of pulumi-eks, made with the children its real provider makes."""
