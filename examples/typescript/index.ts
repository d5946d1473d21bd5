// An account of a pool that another stack declares, claimed by a component of the package credfleet.

import * as pulumi from "@pulumi/pulumi";

interface Account {
    namespace: string;
    secretName: string;
    accountId?: string;
}

/** What `pulumi package add` writes for all components; docs/schema/package.json says what they take. */
class TenantAccounts extends pulumi.ComponentResource {
    public readonly accounts!: pulumi.Output<Record<string, Account>>;

    constructor(
        name: string,
        args: { poolNamespace: pulumi.Input<string>; tenant: string; claims: object[] },
        opts?: pulumi.ComponentResourceOptions,
    ) {
        super("credfleet:index:TenantAccounts", name, { ...args, accounts: undefined }, opts, true);
    }
}

const acme = new TenantAccounts("acme", {
    poolNamespace: "accounts",
    tenant: "acme",
    claims: [{ tenant: "acme", type: "gcp", required: true }],
});

export const account = acme.accounts.apply(claimed => claimed["0"].secretName);
