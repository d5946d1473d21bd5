"""The component package as a folder, for `packages:` of Pulumi.yaml."""
