// An account of a pool that another stack declares, claimed by a component of the package credfleet.
package main

import "github.com/pulumi/pulumi/sdk/v3/go/pulumi"

// TenantAccounts is what `pulumi package add` writes for all components; docs/schema/package.json says what they take.
type TenantAccounts struct {
	pulumi.ResourceState
	Accounts pulumi.MapOutput `pulumi:"accounts"`
}

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		acme := &TenantAccounts{}
		err := ctx.RegisterRemoteComponentResource("credfleet:index:TenantAccounts", "acme", pulumi.Map{
			"poolNamespace": pulumi.String("accounts"),
			"tenant":        pulumi.String("acme"),
			"claims": pulumi.Array{pulumi.Map{
				"tenant":   pulumi.String("acme"),
				"type":     pulumi.String("gcp"),
				"required": pulumi.Bool(true),
			}},
		}, acme)
		if err != nil {
			return err
		}
		ctx.Export("account", acme.Accounts.ApplyT(func(claimed map[string]any) any {
			account, _ := claimed["0"].(map[string]any) // a preview knows none yet
			return account["secretName"]
		}))
		return nil
	})
}
