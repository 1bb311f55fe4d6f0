// Package api is the contract of the service, api/openapi.yaml, as the binaries carry it.
package api

import _ "embed" // for the contract

// OpenAPI is the contract as it is written, in YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte
