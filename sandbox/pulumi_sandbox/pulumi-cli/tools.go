//go:build tools

// Package pulumicli pins the Pulumi CLI; nothing here runs.
package pulumicli

import (
	_ "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
	_ "github.com/pulumi/pulumi/sdk/v3/go/common/version"
)
