// Command api serves the HTTP API. Its settings are environment variables; docs/settings describes them.
package main

import (
	"example.com/orders/internal/boot"
	"example.com/orders/internal/boot/process"
)

func main() { process.Serve("orders-api", process.Ready(), boot.RunAPI) }
