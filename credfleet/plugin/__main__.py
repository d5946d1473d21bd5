"""Serves the components to programs whose Pulumi.yaml names this folder: `packages: {credfleet: FOLDER}`."""

from credfleet.remote.provider import main

main()
