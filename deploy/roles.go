// Package deploy holds what an administrator runs once for a deployment.
package deploy

import _ "embed"

// Roles is SQL that makes the service's roles in the database that it is run in.
//
//go:embed roles.sql
var Roles string
