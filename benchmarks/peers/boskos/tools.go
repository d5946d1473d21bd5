//go:build tools

// Package boskos pins the peer the claims are compared with; nothing here runs.
package boskos

import _ "sigs.k8s.io/boskos/cmd/boskos"
