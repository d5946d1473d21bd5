"""All that lets the program run with no cloud, no cluster and no Pulumi CLI."""
