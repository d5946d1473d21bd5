"""Declare the fleet of a stack."""

import pulumi

from components.fleet import Fleet, export_apps
from components.settings.stack import Settings

fleet = Fleet("fleet", Settings.load())

pulumi.export("accountPool", fleet.account_pool)
pulumi.export("tenants", fleet.tenants)
pulumi.export("asoCredentials", fleet.aso_credentials)
pulumi.export("pullSecrets", fleet.pull_secrets)
pulumi.export("services", fleet.services)
export_apps(fleet)
pulumi.export("secretStores", fleet.secret_stores)
pulumi.export("skipped", fleet.skipped)
