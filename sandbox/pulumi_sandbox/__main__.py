"""`python -m pulumi_sandbox` is the command `pulumi-sandbox`."""

from pulumi_sandbox.command import main

raise SystemExit(main())
